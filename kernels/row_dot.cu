// Scores of pairs by dot products on the GPU (contract: host/ops/row_dot.h): a warp per row, a
// thread per element in the backward.

#include "host/ops/row_dot.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kWarps = kElementThreads / warp_threads;

// report: row_dot_kernel threads=256 bytes=2*R*D*T flops=2*R*D
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    row_dot_kernel(const T* u, int64_t u_stride, const T* v, int64_t v_stride, T scale,
                   T* score,  // (rows)
                   int rows, int columns) {
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  if (row >= rows) return;
  T sum = 0;
  for (int c = lane_index(); c < columns; c += warp_threads) {
    sum += u[row * u_stride + c] * v[row * v_stride + c];
  }
  sum = warp_sum(sum);
  if (lane_index() == 0) score[row] += scale * sum;
}

// report: row_dot_gradient threads=256 bytes=6*R*D*T flops=4*R*D
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    row_dot_gradient(const T* u, int64_t u_stride, const T* v, int64_t v_stride, T scale,
                     const T* dscore,  // (rows)
                     T* du, int64_t du_stride, T* dv, int64_t dv_stride, int rows, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= rows) return;
  const T factor = scale * dscore[e.row];
  du[e.row * du_stride + e.column] += factor * v[e.row * v_stride + e.column];
  dv[e.row * dv_stride + e.column] += factor * u[e.row * u_stride + e.column];
}

}  // namespace

template <class T>
void row_dot(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
             VectorView<T> score) {
  launch(device_of(context).stream(), row_dot_kernel<T>,
         dim3(static_cast<unsigned>((u.rows() + kWarps - 1) / kWarps)), dim3(kElementThreads), 0,
         u.data, u.stride[0], v.data, v.stride[0], static_cast<T>(scale), score.data,
         static_cast<int>(u.rows()), static_cast<int>(u.cols()));
}

template <class T>
void row_dot_backward(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
                      VectorView<const T> dscore, MatrixView<T> du, MatrixView<T> dv) {
  launch(device_of(context).stream(), row_dot_gradient<T>, elements_grid(u.size()),
         dim3(kElementThreads), 0, u.data, u.stride[0], v.data, v.stride[0], static_cast<T>(scale),
         dscore.data, du.data, du.stride[0], dv.data, dv.stride[0], static_cast<int>(u.rows()),
         static_cast<int>(u.cols()));
}

CFAA_FOR_FLOAT_AND_DOUBLE(row_dot);
CFAA_FOR_FLOAT_AND_DOUBLE(row_dot_backward);

}  // namespace cfaa::cuda
