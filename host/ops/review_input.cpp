#include "host/ops/review_input.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"
#include "host/ops/dispatch.h"

namespace cfaa {

template <class T>
void review_input(Context& context, MatrixView<const float> review,
                  VectorView<const int32_t> present, VectorView<const T> absent,
                  MatrixView<T> out) {
  CFAA_ASSERT(review.shape == out.shape && rows_are_dense(review) && rows_are_dense(out));
  CFAA_ASSERT(present.size() == out.rows() && present.contiguous());
  CFAA_ASSERT(absent.size() == out.cols() && absent.contiguous());
  if (out.size() == 0) return;
  CFAA_DISPATCH(context, review_input<T>)(context, review, present, absent, out);
}

template <class T>
void review_input_backward(Context& context, MatrixView<const T> dout,
                           VectorView<const int32_t> present, VectorView<T> dabsent) {
  CFAA_ASSERT(rows_are_dense(dout) && present.size() == dout.rows() && present.contiguous());
  CFAA_ASSERT(dabsent.size() == dout.cols() && dabsent.contiguous());
  if (dout.size() == 0) return;
  CFAA_DISPATCH(context, review_input_backward<T>)(context, dout, present, dabsent);
}

#define CFAA_INSTANTIATE(T)                                                                        \
  template void review_input<T>(Context&, MatrixView<const float>, VectorView<const int32_t>,      \
                                VectorView<const T>, MatrixView<T>);                               \
  template void review_input_backward<T>(Context&, MatrixView<const T>, VectorView<const int32_t>, \
                                         VectorView<T>);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa
