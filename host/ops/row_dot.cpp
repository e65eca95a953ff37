#include "host/ops/row_dot.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void row_dot(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
             VectorView<T> score) {
  CFAA_ASSERT(u.shape == v.shape && rows_are_dense(u) && rows_are_dense(v));
  CFAA_ASSERT(score.size() == u.rows() && score.contiguous());
  if (u.size() == 0) return;
  CFAA_DISPATCH(context, row_dot<T>)(context, u, v, scale, score);
}

template <class T>
void row_dot_backward(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
                      VectorView<const T> dscore, MatrixView<T> du, MatrixView<T> dv) {
  CFAA_ASSERT(u.shape == v.shape && rows_are_dense(u) && rows_are_dense(v));
  CFAA_ASSERT(du.shape == u.shape && rows_are_dense(du) && dv.shape == v.shape &&
              rows_are_dense(dv));
  CFAA_ASSERT(dscore.size() == u.rows() && dscore.contiguous());
  if (u.size() == 0) return;
  CFAA_DISPATCH(context, row_dot_backward<T>)(context, u, v, scale, dscore, du, dv);
}

CFAA_FOR_FLOAT_AND_DOUBLE(row_dot);
CFAA_FOR_FLOAT_AND_DOUBLE(row_dot_backward);

}  // namespace cfaa
