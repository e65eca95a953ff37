#pragma once

// What CUTLASS's device code finds declared when nvcc compiles it, for a host compiler. A warp is
// 32 threads of the host that exchange values at a barrier; what no scheduling of tiles calls is
// declared and never defined. Included before CUTLASS.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <barrier>
#include <functional>

inline thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace cfaa::test {

inline constexpr int kLanes = 32;

class Warp {
 public:
  // The values of all lanes. Every lane calls it with its own.
  const int* exchange(int value) {
    int* slots = slots_[threadIdx.z & 1u];
    ++threadIdx.z;  // two sets of slots: a lane that is ahead writes the other
    slots[threadIdx.x] = value;
    barrier_.arrive_and_wait();
    return slots;
  }

  // Runs `work` once on every lane, in a grid of so many blocks.
  static void run(unsigned block, unsigned blocks, const std::function<void(int lane)>& work);
  static Warp*& current();

 private:
  int slots_[2][kLanes] = {};
  std::barrier<> barrier_{kLanes};
};

}  // namespace cfaa::test

inline int __shfl_sync(unsigned, int value, int lane) {
  return cfaa::test::Warp::current()->exchange(value)[static_cast<unsigned>(lane) % 32u];
}
inline int __shfl_up_sync(unsigned, int value, int distance) {
  const int lane = static_cast<int>(threadIdx.x);
  const int* values = cfaa::test::Warp::current()->exchange(value);
  return lane >= distance ? values[lane - distance] : value;
}
inline unsigned __ballot_sync(unsigned, bool holds) {
  const int* values = cfaa::test::Warp::current()->exchange(holds);
  unsigned ballot = 0;
  for (int lane = 0; lane < cfaa::test::kLanes; ++lane) {
    if (values[lane] != 0) ballot |= 1u << lane;
  }
  return ballot;
}
inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline int min(int a, int b) {
  return a < b ? a : b;
}

void __syncthreads();
void __syncwarp();
int __syncthreads_and(int);
void __threadfence();
unsigned __byte_perm(unsigned, unsigned, unsigned);
int __dp4a(int, int, int);
__half2 __hfma2(__half2, __half2, __half2);
namespace cutlass::arch {
int SmId();
int LaneId();
}  // namespace cutlass::arch
