#include "host/ops/add_scaled.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void add_scaled(Context& context, const double* factor, MatrixView<const T> x, MatrixView<T> y) {
  CFAA_ASSERT(x.shape == y.shape && rows_are_dense(x) && rows_are_dense(y));
  if (x.size() == 0) return;
  CFAA_DISPATCH(context, add_scaled<T>)(context, factor, x, y);
}

CFAA_FOR_FLOAT_AND_DOUBLE(add_scaled);

}  // namespace cfaa
