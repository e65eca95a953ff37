// Review vectors in a tower's input on the GPU (contract: host/ops/review_input.h): a warp per row,
// which reads the entity's total and the one review that is left out, in device memory or over the
// bus. Products are rounded before what is subtracted from them, as on the CPU.

#include "host/ops/review_input.h"

#include <cuda_fp16.h>

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 256;

struct Side {
  const float* total;     // (entities, C)
  const void* sum;        // (reviews, C) in float or __half
  const float* mean;      // (C), or null
  const float* factor;    // (C), or null
  const int32_t* entity;  // (R)
  const int32_t* left_out;
  const float* share;
  int rows, columns;
  bool half, unit;
};

__device__ __forceinline__ float sum_at(const Side& side, int64_t element) {
  return side.half ? __half2float(static_cast<const __half*>(side.sum)[element])
                   : static_cast<const float*>(side.sum)[element];
}

// report: review_input_kernel threads=256 bytes=R*X*(6+T)
template <class T>
__global__ void __launch_bounds__(kThreads) review_input_kernel(Side side,
                                                                T* out,  // (R, C + 1)
                                                                int64_t out_stride) {
  const int row = static_cast<int>(blockIdx.x) * block_warps() + warp_index();
  if (row >= side.rows) return;  // a whole warp
  const int lane = lane_index(), columns = side.columns;
  T* const to = out + row * out_stride;
  const float share = side.share[row];
  if (lane == 0) to[columns] = share == 0.0f ? T(1) : T(0);
  const int64_t total = int64_t{side.entity[row]} * columns;
  const int64_t left_out = int64_t{side.left_out[row]} * columns;
  double squares = 0;
  for (int c = lane; c < columns; c += 32) {
    float x = 0;
    if (share != 0.0f) {
      const float own = left_out >= 0 ? sum_at(side, left_out + c) : 0.0f;
      x = __fmul_rn(side.total[total + c] - own, share);
      if (side.mean != nullptr) x = (x - side.mean[c]) * side.factor[c];
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
    to[c] = static_cast<T>(x);
  }
  if (!side.unit) return;
  squares = warp_sum(squares);
  const double size = sqrt(squares / columns);
  if (!(size > 0)) return;
  for (int c = lane; c < columns; c += 32) {
    to[c] = static_cast<T>(static_cast<float>(static_cast<double>(to[c]) / size));
  }
}

}  // namespace

template <class T>
void review_input(Context& context, const ReviewArrays& arrays, const ReviewedRows& rows,
                  MatrixView<T> out) {
  const Side side = {.total = arrays.total.data,
                     .sum = arrays.sum,
                     .mean = arrays.mean.data,
                     .factor = arrays.factor.data,
                     .entity = rows.entity.data,
                     .left_out = rows.left_out.data,
                     .share = rows.share.data,
                     .rows = static_cast<int>(out.rows()),
                     .columns = static_cast<int>(arrays.total.cols()),
                     .half = arrays.dtype == DType::f16,
                     .unit = arrays.unit};
  constexpr int kRows = kThreads / 32;
  launch(device_of(context).stream(), review_input_kernel<T>,
         dim3(static_cast<unsigned>((side.rows + kRows - 1) / kRows)), dim3(kThreads), 0, side,
         out.data, out.stride[0]);
}

CFAA_FOR_FLOAT_AND_DOUBLE(review_input);

}  // namespace cfaa::cuda
