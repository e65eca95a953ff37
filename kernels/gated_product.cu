// NARRE's scores on the GPU (contract: host/ops/gated_product.h): a warp per row; in the backward
// a thread per element, and for the weights a block per 32 columns.

#include "host/ops/gated_product.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kWarps = kElementThreads / warp_threads, kColumns = 32;

template <class T>
struct ProductTask {
  const T *x, *y;  // (rows, columns)
  int64_t x_stride, y_stride;
  const T* weight;  // (columns)
  DropoutDraw mask;
  int rows, columns;

  template <class F>
  void for_each_pointer(F f) const {
    for (const T* pointer : {x, y, weight}) f(pointer);
    mask.for_each_pointer(f);
  }

  __device__ T mask_of(int row, int column) const {
    return static_cast<T>(mask.factor(static_cast<int64_t>(row) * columns + column));
  }
};

template <class T>
ProductTask<T> task_of(Context& context, MatrixView<const T> x, MatrixView<const T> y,
                       VectorView<const T> weight, const Dropout& dropout) {
  return {x.data,
          y.data,
          x.stride[0],
          y.stride[0],
          weight.data,
          DropoutDraw(context.random(), dropout),
          static_cast<int>(x.rows()),
          static_cast<int>(x.cols())};
}

// report: gated_product_kernel threads=256 bytes=2*R*C*T flops=4*R*C
template <class T>
__global__ void __launch_bounds__(kElementThreads) gated_product_kernel(ProductTask<T> task,
                                                                        const T* bias,  // (1)
                                                                        T* score)       // (rows)
{
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  if (row >= task.rows) return;
  T sum = 0;
  for (int k = lane_index(); k < task.columns; k += warp_threads) {
    const T product = task.x[row * task.x_stride + k] * task.y[row * task.y_stride + k];
    if (!(product <= T(0))) sum += task.weight[k] * product * task.mask_of(row, k);
  }
  sum = warp_sum(sum);
  if (lane_index() == 0) score[row] += bias[0] + sum;
}

// report: gated_product_gradient threads=256 bytes=4*R*C*T flops=6*R*C
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    gated_product_gradient(ProductTask<T> task,
                           const T* dscore,  // (rows)
                           T* dx, int64_t dx_stride, T* dy, int64_t dy_stride) {
  const Element e = element_of_thread(task.columns);
  if (e.row >= task.rows) return;
  const T x = task.x[e.row * task.x_stride + e.column];
  const T y = task.y[e.row * task.y_stride + e.column];
  T through = 0;
  if (x * y > T(0)) through = dscore[e.row] * task.mask_of(e.row, e.column) * task.weight[e.column];
  dx[e.row * dx_stride + e.column] = through * y;
  dy[e.row * dy_stride + e.column] = through * x;
}

// Column `columns` is b. Four blocks a multiprocessor: for six, ptxas spills on sm_120.
// report: gated_product_weights threads=256 bytes=2*R*C*T flops=5*R*C
template <class T>
__global__ void __launch_bounds__(kElementThreads, 4)
    gated_product_weights(ProductTask<T> task,
                          const T* dscore,  // (rows)
                          T* dweight,       // (columns)
                          T* dbias)         // (1)
{
  CFAA_SHARED(T, parts, kColumns * kWarps);
  const int lane = lane_index(), warp = warp_index();
  const int k = static_cast<int>(blockIdx.x) * kColumns + lane;
  T sum = 0;
  if (k <= task.columns) {
    for (int row = warp; row < task.rows; row += kWarps) {
      if (k == task.columns) {
        sum += dscore[row];
        continue;
      }
      const T product = task.x[row * task.x_stride + k] * task.y[row * task.y_stride + k];
      if (product > T(0)) sum += dscore[row] * task.mask_of(row, k) * product;
    }
  }
  parts[warp * kColumns + lane] = sum;
  __syncthreads();
  if (warp != 0 || k > task.columns) return;
  T total = 0;
  for (int part = 0; part < kWarps; ++part) {
    const T next = parts[part * kColumns + lane];
    total += next;
  }
  (k == task.columns ? dbias[0] : dweight[k]) += total;
}

// report: gated_product_rows_kernel threads=256 bytes=3*R*C*T flops=R*C
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    gated_product_rows_kernel(const T* x,  // (rows, columns)
                              int64_t x_stride,
                              const T* weight,  // (columns), or null
                              T* out,           // (rows, 2 columns)
                              int64_t out_stride, int rows, int columns) {
  const Element e = element_of_thread(columns);
  if (e.row >= rows) return;
  const T value = x[e.row * x_stride + e.column];
  const T weighted = (weight == nullptr ? T(1) : weight[e.column]) * value;
  out[e.row * out_stride + e.column] = value > T(0) ? weighted : T(0);
  out[e.row * out_stride + columns + e.column] = value > T(0) ? T(0) : -weighted;
}

}  // namespace

template <class T>
void gated_product(Context& context, MatrixView<const T> x, MatrixView<const T> y,
                   VectorView<const T> weight, VectorView<const T> bias, const Dropout& dropout,
                   VectorView<T> score) {
  launch(device_of(context).stream(), gated_product_kernel<T>,
         dim3(static_cast<unsigned>((x.rows() + kWarps - 1) / kWarps)), dim3(kElementThreads), 0,
         task_of(context, x, y, weight, dropout), bias.data, score.data);
}

template <class T>
void gated_product_backward(Context& context, MatrixView<const T> x, MatrixView<const T> y,
                            VectorView<const T> weight, const Dropout& dropout,
                            VectorView<const T> dscore, MatrixView<T> dx, MatrixView<T> dy,
                            VectorView<T> dweight, VectorView<T> dbias) {
  const ProductTask<T> task = task_of(context, x, y, weight, dropout);
  const cudaStream_t stream = device_of(context).stream();
  launch(stream, gated_product_gradient<T>, elements_grid(x.size()), dim3(kElementThreads), 0, task,
         dscore.data, dx.data, dx.stride[0], dy.data, dy.stride[0]);
  launch(stream, gated_product_weights<T>, dim3(static_cast<unsigned>(x.cols() / kColumns + 1)),
         dim3(kElementThreads), 0, task, dscore.data, dweight.data, dbias.data);
}

template <class T>
void gated_product_rows(Context& context, MatrixView<const T> x, VectorView<const T> weight,
                        MatrixView<T> out) {
  launch(device_of(context).stream(), gated_product_rows_kernel<T>, elements_grid(x.size()),
         dim3(kElementThreads), 0, x.data, x.stride[0], weight.data, out.data, out.stride[0],
         static_cast<int>(x.rows()), static_cast<int>(x.cols()));
}

CFAA_FOR_FLOAT_AND_DOUBLE(gated_product);
CFAA_FOR_FLOAT_AND_DOUBLE(gated_product_backward);
CFAA_FOR_FLOAT_AND_DOUBLE(gated_product_rows);

}  // namespace cfaa::cuda
