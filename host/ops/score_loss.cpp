#include "host/ops/score_loss.h"

#include "host/core/error.h"

namespace cfaa {

template <class T>
void cross_entropy(Context& context, VectorView<const T> score, VectorView<const T> label,
                   VectorView<const T> weight, VectorView<T> loss, VectorView<T> dscore) {
  CFAA_ASSERT(score.contiguous() && label.contiguous() && weight.contiguous() &&
              dscore.contiguous());
  CFAA_ASSERT(label.size() == score.size() && weight.size() == score.size());
  CFAA_ASSERT(dscore.size() == score.size() && loss.size() == 1);
  CFAA_DISPATCH(context, cross_entropy<T>)(context, score, label, weight, loss, dscore);
}

template <class T>
void pairwise_loss(Context& context, VectorView<const T> score, int64_t negatives,
                   VectorView<const T> weight, VectorView<T> loss, VectorView<T> dscore) {
  CFAA_ASSERT(score.contiguous() && weight.contiguous() && dscore.contiguous());
  CFAA_ASSERT(negatives >= 1 && score.size() % (negatives + 1) == 0);
  CFAA_ASSERT(weight.size() == score.size() && dscore.size() == score.size() && loss.size() == 1);
  CFAA_DISPATCH(context, pairwise_loss<T>)(context, score, negatives, weight, loss, dscore);
}

template <class T>
void self_training_loss(Context& context, VectorView<const T> score, VectorView<const T> weight,
                        const SureScores& sure, VectorView<T> loss, VectorView<T> dscore) {
  CFAA_ASSERT(score.contiguous() && weight.contiguous() && dscore.contiguous());
  CFAA_ASSERT(weight.size() == score.size() && dscore.size() == score.size() && loss.size() == 1);
  CFAA_DISPATCH(context, self_training_loss<T>)(context, score, weight, sure, loss, dscore);
}

CFAA_FOR_FLOAT_AND_DOUBLE(cross_entropy);
CFAA_FOR_FLOAT_AND_DOUBLE(pairwise_loss);
CFAA_FOR_FLOAT_AND_DOUBLE(self_training_loss);

}  // namespace cfaa
