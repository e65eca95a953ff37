#include "host/ops/relu.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void relu(Context& context, MatrixView<T> x) {
  CFAA_ASSERT(rows_are_dense(x));
  if (x.size() == 0) return;
  CFAA_DISPATCH(context, relu<T>)(context, x);
}

template <class T>
void relu_backward(Context& context, MatrixView<const T> y, MatrixView<T> dx) {
  CFAA_ASSERT(rows_are_dense(y) && rows_are_dense(dx) && y.shape == dx.shape);
  if (y.size() == 0) return;
  CFAA_DISPATCH(context, relu_backward<T>)(context, y, dx);
}

CFAA_FOR_FLOAT_AND_DOUBLE(relu);
CFAA_FOR_FLOAT_AND_DOUBLE(relu_backward);

}  // namespace cfaa
