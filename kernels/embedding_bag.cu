// Bags on the GPU (contract: host/ops/embedding_bag.h). Forward and backward are the same sum over
// lists of rows: a warp per list and 128 columns, which adds up the list in its order, so that rows
// are read whole and nothing is added by two threads.

#include "host/ops/embedding_bag.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kColumnsOfLane = 4;

// out_r = sum_{e in offset[r] .. offset[r + 1]} weight_e x[index_e] for r < rows, and r < count[0]
// where count is given.
// report: sum_rows threads=128 bytes=(E*C+R*C)*T flops=2*E*C
template <class T>
__global__ void __launch_bounds__(kWarps* warp_threads)
    sum_rows(const int32_t* count,   // (1) or null
             int rows,               //
             const int32_t* offset,  // (rows + 1)
             const int32_t* index,   // (E)
             const T* weight,        // (E)
             const T* x, int64_t x_stride, T* out, int64_t out_stride, int columns) {
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  if (row >= rows || (count != nullptr && row >= count[0])) return;
  const int first = static_cast<int>(blockIdx.y) * (warp_threads * kColumnsOfLane) + lane_index();
  T sum[kColumnsOfLane] = {};
  const int end = offset[row + 1];
  for (int e = offset[row]; e < end; ++e) {
    const T factor = weight[e];
    const T* from = x + index[e] * x_stride;
#pragma unroll
    for (int j = 0; j < kColumnsOfLane; ++j) {
      const int column = first + j * warp_threads;
      if (column < columns) sum[j] += factor * from[column];
    }
  }
#pragma unroll
  for (int j = 0; j < kColumnsOfLane; ++j) {
    const int column = first + j * warp_threads;
    if (column < columns) out[row * out_stride + column] = sum[j];
  }
}

template <class T>
void launch_sum_rows(Context& context, const int32_t* count, int64_t rows, const int32_t* offset,
                     const int32_t* index, const T* weight, MatrixView<const T> x,
                     MatrixView<T> out) {
  constexpr int64_t columns_at_once = warp_threads * kColumnsOfLane;
  launch(device_of(context).stream(), sum_rows<T>,
         dim3(static_cast<unsigned>((rows + kWarps - 1) / kWarps),
              static_cast<unsigned>((out.cols() + columns_at_once - 1) / columns_at_once)),
         dim3(kWarps * warp_threads), 0, count, static_cast<int>(rows), offset, index, weight,
         x.data, x.stride[0], out.data, out.stride[0], static_cast<int>(out.cols()));
}

}  // namespace

template <class T>
void embedding_bag(Context& context, MatrixView<const T> table, const Bags<T>& bags,
                   MatrixView<T> out) {
  launch_sum_rows<T>(context, nullptr, out.rows(), bags.offset.data, bags.index.data,
                     bags.weight.data, table, out);
}

template <class T>
void embedding_bag_backward(Context& context, MatrixView<const T> dout,
                            const TouchedRows<T>& touched, MatrixView<T> gradient) {
  launch_sum_rows<T>(context, touched.count.data, touched.row.size(), touched.offset.data,
                     touched.bag.data, touched.weight.data, dout, gradient);
}

CFAA_FOR_FLOAT_AND_DOUBLE(embedding_bag);
CFAA_FOR_FLOAT_AND_DOUBLE(embedding_bag_backward);

}  // namespace cfaa::cuda
