#include "host/ops/add_scaled.h"

namespace cfaa::cpu {

template <class T>
void add_scaled(Context& context, const double* factor, MatrixView<const T> x, MatrixView<T> y) {
  const T scale = factor == nullptr ? T(1) : static_cast<T>(factor[0]);
  context.threads().parallel_for(x.rows(), 32, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = x.data + r * x.stride[0];
      T* to = y.data + r * y.stride[0];
      for (int64_t c = 0; c < x.cols(); ++c) to[c] += scale * from[c];
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(add_scaled);

}  // namespace cfaa::cpu
