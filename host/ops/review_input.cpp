#include "host/ops/review_input.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void review_input(Context& context, MatrixView<const float> review, MatrixView<T> out) {
  CFAA_ASSERT(review.shape == out.shape && rows_are_dense(review) && rows_are_dense(out));
  if (out.size() == 0) return;
  CFAA_DISPATCH(context, review_input<T>)(context, review, out);
}

CFAA_FOR_FLOAT_AND_DOUBLE(review_input);

}  // namespace cfaa
