// Peak rates of the GPU: every thread runs eight independent chains on registers. Eight warps a
// scheduler hide the latency of a multiply-add, so the grid is the whole device several times over.

#include "bench/peaks/peak_rates.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kChains = 8;
constexpr int kBlocksPerMultiprocessor = 8;

struct MultiplyAdd {
  template <class T>
  __device__ __forceinline__ T operator()(T value) const {
    return value * T(0.999) + T(1e-3);
  }
};

struct Exponential {
  __device__ __forceinline__ float operator()(float value) const { return __expf(value - 1.0f); }
  __device__ __forceinline__ double operator()(double value) const { return exp(value - 1.0); }
};

// sink[0] is written by no thread in practice, but the compiler cannot know.
// report: chains threads=256 bytes=T
template <class T, class Step>
__global__ void __launch_bounds__(kThreads)
    chains(Step step, long long rounds, T* __restrict__ sink) {  // sink (1)
  T value[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) value[c] = static_cast<T>(threadIdx.x + c) * T(1e-3);
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) value[c] = step(value[c]);
  }
  T sum = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) sum += value[c];
  if (sum == T(-12345)) sink[0] = sum;
}

template <class T, class Step>
double run_chains(Context& context, double count, VectorView<T> sink) {
  Device& device = device_of(context);
  const int blocks = device.properties().multiProcessorCount * kBlocksPerMultiprocessor;
  const double per_round = static_cast<double>(blocks) * kThreads * kChains;
  const auto rounds = static_cast<long long>(count / per_round) + 1;
  launch(device.stream(), chains<T, Step>, dim3(blocks), dim3(kThreads), 0, Step{}, rounds,
         sink.data);
  return per_round * static_cast<double>(rounds);
}

}  // namespace

template <class T>
double run_multiply_adds(Context& context, double count, VectorView<T> sink) {
  return run_chains<T, MultiplyAdd>(context, count, sink);
}

template <class T>
double run_exponentials(Context& context, double count, VectorView<T> sink) {
  return run_chains<T, Exponential>(context, count, sink);
}

CFAA_FOR_FLOAT_AND_DOUBLE(run_multiply_adds);
CFAA_FOR_FLOAT_AND_DOUBLE(run_exponentials);

}  // namespace cfaa::cuda
