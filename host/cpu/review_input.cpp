#include "host/ops/review_input.h"

#include <algorithm>

namespace cfaa::cpu {

template <class T>
void review_input(Context& context, MatrixView<const float> review,
                  VectorView<const int32_t> present, VectorView<const T> absent,
                  MatrixView<T> out) {
  const int64_t columns = out.cols();
  context.threads().parallel_for(out.rows(), 32, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      T* to = out.data + r * out.stride[0];
      if (present.data[r] != 0) {
        std::copy_n(review.data + r * review.stride[0], columns, to);
      } else {
        std::copy_n(absent.data, columns, to);
      }
    }
  });
}

// By columns, so that each is added up in the order of the rows whatever the threads.
template <class T>
void review_input_backward(Context& context, MatrixView<const T> dout,
                           VectorView<const int32_t> present, VectorView<T> dabsent) {
  context.threads().parallel_for(dout.cols(), 128, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = 0; r < dout.rows(); ++r) {
      if (present.data[r] != 0) continue;
      const T* from = dout.data + r * dout.stride[0];
      for (int64_t c = begin; c < end; ++c) dabsent.data[c] += from[c];
    }
  });
}

#define CFAA_INSTANTIATE(T)                                                                        \
  template void review_input<T>(Context&, MatrixView<const float>, VectorView<const int32_t>,      \
                                VectorView<const T>, MatrixView<T>);                               \
  template void review_input_backward<T>(Context&, MatrixView<const T>, VectorView<const int32_t>, \
                                         VectorView<T>);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa::cpu
