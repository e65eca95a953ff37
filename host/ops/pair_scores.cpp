#include "host/ops/pair_scores.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void pair_scores(Context& context, MatrixView<const T> users, MatrixView<const T> items,
                 std::span<const PairLayer<T>> layers, bool add, MatrixView<T> scores) {
  CFAA_ASSERT(rows_are_dense(users) && rows_are_dense(items) && rows_are_dense(scores));
  CFAA_ASSERT(users.cols() == items.cols() && users.cols() >= 1);
  CFAA_ASSERT(scores.rows() == users.rows() && scores.cols() == items.rows());
  CFAA_ASSERT(!layers.empty() && layers.back().weight.rows() == 1);
  int64_t in = users.cols();
  for (const PairLayer<T>& layer : layers) {
    CFAA_ASSERT(layer.weight.cols() == in && layer.weight.contiguous());
    CFAA_ASSERT(layer.bias.size() == layer.weight.rows() && layer.bias.contiguous());
    in = layer.weight.rows();
  }
  if (scores.size() == 0) return;

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, pair_scores<T>)(context, users, items, layers, add, scores);
}

CFAA_FOR_FLOAT_AND_DOUBLE(pair_scores);

}  // namespace cfaa
