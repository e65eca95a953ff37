#include "host/ops/review_input.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {

template <class T>
void review_input(Context& context, const ReviewArrays& arrays, const ReviewedRows& rows,
                  MatrixView<T> out) {
  const int64_t columns = arrays.total.cols();
  CFAA_ASSERT(out.cols() == columns + 1 && rows_are_dense(out) && arrays.total.contiguous());
  CFAA_ASSERT(rows.entity.size() == out.rows() && rows.left_out.size() == out.rows() &&
              rows.share.size() == out.rows());
  CFAA_ASSERT(arrays.dtype == DType::f32 || arrays.dtype == DType::f16);
  CFAA_ASSERT((arrays.mean.data == nullptr) == (arrays.factor.data == nullptr));
  CFAA_ASSERT(arrays.mean.data == nullptr || (arrays.mean.size() == columns && !arrays.unit));
  if (out.rows() == 0) return;
  CFAA_DISPATCH(context, review_input<T>)(context, arrays, rows, out);
}

CFAA_FOR_FLOAT_AND_DOUBLE(review_input);

}  // namespace cfaa
