#include "host/ops/center_loss.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void center_loss(Context& context, MatrixView<const T> v, int64_t negatives,
                 VectorView<const T> label, VectorView<const T> weight,
                 const CenterMargins& margins, double scale, VectorView<T> loss, MatrixView<T> dv) {
  CFAA_ASSERT(rows_are_dense(v) && rows_are_dense(dv) && dv.shape == v.shape && v.size() > 0);
  CFAA_ASSERT(negatives >= 0 && v.rows() % (negatives + 1) == 0);
  CFAA_ASSERT(label.size() == v.rows() && label.contiguous());
  CFAA_ASSERT(weight.size() == v.rows() && weight.contiguous() && loss.size() == 1);

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, center_loss<T>)
  (context, v, negatives, label, weight, margins, scale, loss, dv);
}

CFAA_FOR_FLOAT_AND_DOUBLE(center_loss);

}  // namespace cfaa
