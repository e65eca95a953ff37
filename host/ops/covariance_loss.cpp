#include "host/ops/covariance_loss.h"

#include <string>

#include "host/core/error.h"

namespace cfaa {

template <class T>
void covariance_loss(Context& context, EmbeddingPairs<T> pairs, double scale, VectorView<T> loss,
                     GradientPairs<T> gradients) {
  check_pairs(pairs);
  check_gradients(pairs, gradients);
  CFAA_ASSERT(loss.size() == 1);
  for (const EmbeddingPair<T>& pair : pairs) {
    if (pair.source.rows() < 2 || pair.target.rows() < 2) {
      throw Error("a covariance needs at least two rows, and the sets have " +
                  std::to_string(pair.source.rows()) + " and " +
                  std::to_string(pair.target.rows()) + "; use a larger train.batch_size");
    }
  }

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, covariance_loss<T>)(context, pairs, scale, loss, gradients);
}

CFAA_FOR_FLOAT_AND_DOUBLE(covariance_loss);

}  // namespace cfaa
