#pragma once
// The device primitives every kernel is written with: shared memory, reductions over a warp or a
// block, a sort of a column. The same source compiles with nvcc and on the emulated device, where
// Shared<T> also checks bounds, uninitialised reads and races (tests/emulator/README.md).
//
// Blocks are one-dimensional and a multiple of 32 threads; every thread of the block calls every
// block_* function.

#include <cuda_runtime.h>

#ifdef CFAA_EMULATED
#include "emulator/shared.h"
#endif

namespace cfaa::cuda {

#ifdef CFAA_EMULATED

template <typename T>
using Shared = emulator::Shared<T>;
using emulator::SharedArena;

// `Shared<T> name` of `size` elements (a constant), one per block.
#define CFAA_SHARED(T, name, size)     \
  static const char name##_key = 0;    \
  const ::cfaa::cuda::Shared<T> name = \
      ::emulator::static_shared<T>(static_cast<const void*>(&name##_key), size)

#else

// An array in shared memory. Read and write elements whole and by type (`float x = s[i];`, not
// `auto`), so that the emulated device can watch them; &s[i] is for atomics only.
template <typename T>
class Shared {
 public:
  Shared() = default;
  __device__ explicit Shared(T* data) : data_(data) {}

  template <typename Index>
  __device__ T& operator[](Index i) const {
    return data_[i];
  }

  // Elements [offset, offset + size) as a Shared of their own.
  __device__ Shared part(long long offset, long long size) const {
    (void)size;
    return Shared(data_ + offset);
  }

 private:
  T* data_ = nullptr;
};

extern __shared__ uint4 cfaa_dynamic_shared[];  // uint4: aligned to 16 bytes

// Hands out the dynamic shared memory of the launch, piece by piece. Every thread takes the same
// pieces in the same order; the launcher asks for the sum of shared_bytes<T>(size).
class SharedArena {
 public:
  template <typename T>
  __device__ Shared<T> take(long long size) {
    T* piece = reinterpret_cast<T*>(cfaa_dynamic_shared + used_);
    used_ += (size * sizeof(T) + 15) / 16;
    return Shared<T>(piece);
  }

 private:
  size_t used_ = 0;  // in units of 16 bytes
};

#define CFAA_SHARED(T, name, size)   \
  __shared__ T name##_storage[size]; \
  const ::cfaa::cuda::Shared<T> name(name##_storage)

#endif  // CFAA_EMULATED

// What SharedArena::take<T>(size) uses up: pieces start at multiples of 16 bytes.
template <typename T>
constexpr size_t shared_bytes(long long size) {
  return (static_cast<size_t>(size) * sizeof(T) + 15) / 16 * 16;
}

inline constexpr unsigned full_warp = 0xFFFFFFFFu;
inline constexpr int warp_threads = 32;
inline constexpr int max_block_warps = 32;

__device__ __forceinline__ int lane_index() {
  return static_cast<int>(threadIdx.x) % warp_threads;
}
__device__ __forceinline__ int warp_index() {
  return static_cast<int>(threadIdx.x) / warp_threads;
}
__device__ __forceinline__ int block_warps() {
  return static_cast<int>(blockDim.x) / warp_threads;
}

struct Sum {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

// Over the 32 lanes; every lane gets the same bits, since a butterfly adds the same pairs
// everywhere. All lanes of the warp take part.
template <typename T, typename Combine>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int lanes = warp_threads / 2; lanes > 0; lanes /= 2) {
    const T other = __shfl_xor_sync(full_warp, value, lanes);
    value = combine(value, other);
  }
  return value;
}

template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
  return warp_reduce(value, Sum{});
}

// Over the block; every thread gets the same bits, in an order that depends on nothing but the size
// of the block. Two barriers: the second lets the next reduction reuse the warps' slots.
template <typename T, typename Combine>
__device__ __forceinline__ T block_reduce(T value, Combine combine) {
  CFAA_SHARED(T, of_warp, max_block_warps);
  value = warp_reduce(value, combine);
  if (lane_index() == 0) of_warp[warp_index()] = value;
  __syncthreads();
  T total = of_warp[0];
  for (int warp = 1; warp < block_warps(); ++warp) {
    const T next = of_warp[warp];
    total = combine(total, next);
  }
  __syncthreads();
  return total;
}

template <typename T>
__device__ __forceinline__ T block_sum(T value) {
  return block_reduce(value, Sum{});
}
template <typename T>
__device__ __forceinline__ T block_max(T value) {
  return block_reduce(value, Max{});
}
template <typename T>
__device__ __forceinline__ T block_min(T value) {
  return block_reduce(value, Min{});
}

// Elements that block_sort needs room for: n rounded up to a power of two.
__host__ __device__ constexpr int sort_capacity(int n) {
  int capacity = 1;
  while (capacity < n) capacity *= 2;
  return capacity;
}

// Sorts column[0, n) in ascending order, in place. The column (Shared<T>, or T* in global memory)
// has room for sort_capacity(n) elements; those from n on become `last`, which no element exceeds.
// Bitonic: log2(n)(log2(n) + 1)/2 passes, each one barrier. The caller's writes need no barrier
// before, and its reads none after. Elements that compare equal must be equal: there is no NaN and
// no order between them.
template <typename Column, typename T>
__device__ void block_sort(Column column, int n, T last) {
  const int capacity = sort_capacity(n);
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  for (int i = n + thread; i < capacity; i += threads) column[i] = last;
  __syncthreads();
  for (int run = 2; run <= capacity; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      for (int pair = thread; pair < capacity / 2; pair += threads) {
        const int low = 2 * pair - (pair & (distance - 1));
        const int high = low + distance;
        const T a = column[low];
        const T b = column[high];
        const bool ascending = (low & run) == 0;
        if (ascending ? b < a : a < b) {
          column[low] = b;
          column[high] = a;
        }
      }
      __syncthreads();
    }
  }
}

// Numbers; those from n on become +infinity.
template <typename T>
__device__ void block_sort(Shared<T> column, int n) {
  block_sort(column, n, static_cast<T>(HUGE_VAL));
}

}  // namespace cfaa::cuda
