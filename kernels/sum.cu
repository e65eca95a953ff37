// out[0] = scale * sum_i values[i] in double, by one block: each thread adds up a stretch in index
// order, the stretches are joined in a fixed order. Sums here have hundreds of terms, so one block
// is enough, and the result has the same bits on every run.

#include "host/ops/sum.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 256;

// report: sum_kernel threads=256 bytes=Q*T flops=Q fp64
template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(const T* values, int64_t count, double scale, T* out) {
  const int64_t stretch = (count + kThreads - 1) / kThreads;
  const int64_t begin = int64_t{threadIdx.x} * stretch;
  const int64_t end = begin + stretch < count ? begin + stretch : count;
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += values[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[0] = static_cast<T>(scale * sum);
}

}  // namespace

template <class T>
void sum(Context& context, VectorView<const T> values, double scale, VectorView<T> out) {
  launch(device_of(context).stream(), sum_kernel<T>, dim3(1), dim3(kThreads), 0, values.data,
         values.size(), scale, out.data);
}

CFAA_FOR_FLOAT_AND_DOUBLE(sum);

}  // namespace cfaa::cuda
