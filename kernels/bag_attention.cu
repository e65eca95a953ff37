// Attention over bags on the GPU (contract: host/ops/bag_attention.h): a warp per bag, and in the
// backward a warp per row that bags name, which walks through them in their order.

#include "host/ops/bag_attention.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kWarps = 4;

dim3 grid_of_warps(int64_t warps) {
  return dim3(static_cast<unsigned>((warps + kWarps - 1) / kWarps));
}

// report: bag_attention_kernel threads=128 bytes=(E*C+R*C)*T flops=2*E*C exps=2*E
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads)
    bag_attention_kernel(const T* x,  // (V, columns)
                         int64_t x_stride,
                         const T* logit,         // (V)
                         const int32_t* offset,  // (rows + 1)
                         const int32_t* index,   // (E)
                         T* out,                 // (rows, columns)
                         int64_t out_stride,
                         T* softmax,  // (rows, 2)
                         int rows, int columns) {
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_index(), lane = lane_index();
  if (row >= rows) return;
  const int begin = offset[row], end = offset[row + 1];
  T most = begin < end ? logit[index[begin]] : T(0);
  for (int e = begin + lane; e < end; e += warp_threads) most = Max{}(most, logit[index[e]]);
  most = warp_reduce(most, Max{});
  T sum = 0;
  for (int e = begin + lane; e < end; e += warp_threads) sum += exp(logit[index[e]] - most);
  sum = warp_sum(sum);
  if (lane == 0) {
    softmax[2 * row] = most;
    softmax[2 * row + 1] = sum;
  }
  T* to = out + row * out_stride;
  for (int c = lane; c < columns; c += warp_threads) to[c] = 0;
  for (int e = begin; e < end; ++e) {
    const T share = exp(logit[index[e]] - most) / sum;
    const T* from = x + index[e] * x_stride;
    for (int c = lane; c < columns; c += warp_threads) to[c] += share * from[c];
  }
}

// <dout_r, out_r>
// report: bag_attention_along threads=128 bytes=2*R*C*T flops=2*R*C
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads)
    bag_attention_along(const T* dout, int64_t dout_stride, const T* out, int64_t out_stride,
                        T* along,  // (rows)
                        int rows, int columns) {
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  if (row >= rows) return;
  T sum = 0;
  for (int c = lane_index(); c < columns; c += warp_threads) {
    sum += dout[row * dout_stride + c] * out[row * out_stride + c];
  }
  sum = warp_sum(sum);
  if (lane_index() == 0) along[row] = sum;
}

template <class T>
struct AttentionGradient {
  const int32_t* count;                 // (1)
  const int32_t *row, *offset, *bag;    // as in TouchedRows
  const T *x, *logit, *softmax, *dout;  // (V, columns), (V), (R, 2), (R, columns)
  int64_t x_stride, dout_stride;
  const T* along;  // (R)
  T *dx, *dlogit;  // (V, columns), (V)
  int64_t dx_stride;
  int columns;

  template <class F>
  void for_each_pointer(F f) const {
    for (const int32_t* pointer : {count, row, offset, bag}) f(pointer);
    for (const T* pointer : {x, logit, softmax, dout, along, static_cast<const T*>(dx),
                             static_cast<const T*>(dlogit)}) {
      f(pointer);
    }
  }
};

// report: bag_attention_gradient threads=128 bytes=(2*E*C+R*C)*T flops=4*E*C exps=E
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads)
    bag_attention_gradient(AttentionGradient<T> task) {
  const int i = static_cast<int>(blockIdx.x) * kWarps + warp_index(), lane = lane_index();
  if (i >= task.count[0]) return;
  const int64_t row = task.row[i];
  const T* x = task.x + row * task.x_stride;
  T* dx = task.dx + row * task.dx_stride;
  const T logit = task.logit[row];
  T dlogit = 0;
  const int end = task.offset[i + 1];
  for (int e = task.offset[i]; e < end; ++e) {
    const int64_t r = task.bag[e];
    const T* dout = task.dout + r * task.dout_stride;
    const T share = exp(logit - task.softmax[2 * r]) / task.softmax[2 * r + 1];
    T product = 0;
    for (int c = lane; c < task.columns; c += warp_threads) {
      dx[c] += share * dout[c];
      product += dout[c] * x[c];
    }
    product = warp_sum(product);
    dlogit += share * (product - task.along[r]);
  }
  if (lane == 0) task.dlogit[row] += dlogit;
}

}  // namespace

template <class T>
void bag_attention(Context& context, MatrixView<const T> x, VectorView<const T> logit,
                   const Bags<T>& bags, MatrixView<T> out, MatrixView<T> softmax) {
  launch(device_of(context).stream(), bag_attention_kernel<T>, grid_of_warps(out.rows()),
         dim3(kWarps * warp_threads), 0, x.data, x.stride[0], logit.data, bags.offset.data,
         bags.index.data, out.data, out.stride[0], softmax.data, static_cast<int>(out.rows()),
         static_cast<int>(out.cols()));
}

template <class T>
void bag_attention_backward(Context& context, MatrixView<const T> x, VectorView<const T> logit,
                            MatrixView<const T> out, MatrixView<const T> softmax,
                            MatrixView<const T> dout, const TouchedRows<T>& touched,
                            MatrixView<T> dx, VectorView<T> dlogit) {
  const cudaStream_t stream = device_of(context).stream();
  const auto along = context.scratch().template take<T, 1>({out.rows()});
  launch(stream, bag_attention_along<T>, grid_of_warps(out.rows()), dim3(kWarps * warp_threads), 0,
         dout.data, dout.stride[0], out.data, out.stride[0], along.data,
         static_cast<int>(out.rows()), static_cast<int>(out.cols()));
  const AttentionGradient<T> task{.count = touched.count.data,
                                  .row = touched.row.data,
                                  .offset = touched.offset.data,
                                  .bag = touched.bag.data,
                                  .x = x.data,
                                  .logit = logit.data,
                                  .softmax = softmax.data,
                                  .dout = dout.data,
                                  .x_stride = x.stride[0],
                                  .dout_stride = dout.stride[0],
                                  .along = along.data,
                                  .dx = dx.data,
                                  .dlogit = dlogit.data,
                                  .dx_stride = dx.stride[0],
                                  .columns = static_cast<int>(x.cols())};
  launch(stream, bag_attention_gradient<T>, grid_of_warps(touched.row.size()),
         dim3(kWarps * warp_threads), 0, task);
}

CFAA_FOR_FLOAT_AND_DOUBLE(bag_attention);
CFAA_FOR_FLOAT_AND_DOUBLE(bag_attention_backward);

}  // namespace cfaa::cuda
