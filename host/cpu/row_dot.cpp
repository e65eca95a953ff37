#include "host/ops/row_dot.h"

#include "host/cpu/blas.h"

namespace cfaa::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 32;

}

template <class T>
void row_dot(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
             VectorView<T> score) {
  use_one_blas_thread();
  context.threads().parallel_for(u.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      score.data[r] +=
          static_cast<T>(scale * dot(u.cols(), u.data + r * u.stride[0], v.data + r * v.stride[0]));
    }
  });
}

template <class T>
void row_dot_backward(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
                      VectorView<const T> dscore, MatrixView<T> du, MatrixView<T> dv) {
  context.threads().parallel_for(u.rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const T factor = static_cast<T>(scale * dscore.data[r]);
      const T *u_row = u.data + r * u.stride[0], *v_row = v.data + r * v.stride[0];
      T *du_row = du.data + r * du.stride[0], *dv_row = dv.data + r * dv.stride[0];
      for (int64_t c = 0; c < u.cols(); ++c) du_row[c] += factor * v_row[c];
      for (int64_t c = 0; c < u.cols(); ++c) dv_row[c] += factor * u_row[c];
    }
  });
}

CFAA_FOR_FLOAT_AND_DOUBLE(row_dot);
CFAA_FOR_FLOAT_AND_DOUBLE(row_dot_backward);

}  // namespace cfaa::cpu
