// Dropout on the GPU (contract: host/ops/dropout.h): a thread per Philox block, that is per four
// elements. The bits decide as integers, so the mask is the CPU's.

#include "host/ops/dropout.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

// report: dropout_kernel threads=256 bytes=2*G*N*D*T flops=G*N*D
template <class T>
__global__ void __launch_bounds__(kElementThreads)
    dropout_kernel(Philox random, const StepState* state, uint64_t layer, uint32_t threshold,
                   T scale,
                   T* x,  // (size / columns, columns)
                   int64_t stride, int columns, int64_t size) {
  const int64_t block = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (4 * block >= size) return;
  const Philox::Block bits = random(static_cast<uint64_t>(block), (state->draw << 16) + layer);
  int row = static_cast<int>(4 * block / columns), column = static_cast<int>(4 * block % columns);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (4 * block + j >= size) return;
    T& value = x[row * stride + column];
    value = (bits.word[j] >> 8) >= threshold ? value * scale : T(0);
    if (++column == columns) {
      column = 0;
      ++row;
    }
  }
}

}  // namespace

template <class T>
void dropout(Context& context, double p, const StepState* state, uint64_t layer, MatrixView<T> x) {
  launch(device_of(context).stream(), dropout_kernel<T>, elements_grid((x.size() + 3) / 4),
         dim3(kElementThreads), 0, context.random(), state, layer, dropout_threshold(p),
         static_cast<T>(1 / (1 - p)), x.data, x.stride[0], static_cast<int>(x.cols()), x.size());
}

CFAA_FOR_FLOAT_AND_DOUBLE(dropout);

}  // namespace cfaa::cuda
