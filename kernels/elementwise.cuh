#pragma once

// A thread per element of a (rows, columns) matrix, counted along the rows.

#include <cuda_runtime.h>

#include <cstdint>

#include "host/core/error.h"

namespace cfaa::cuda {

inline constexpr int kElementThreads = 256;

inline dim3 elements_grid(int64_t size) {
  CFAA_ASSERT(size <= INT32_MAX - kElementThreads);
  return dim3(static_cast<unsigned>((size + kElementThreads - 1) / kElementThreads));
}

struct Element {
  int row, column;
};

// The row may lie beyond the matrix.
__device__ __forceinline__ Element element_of_thread(int columns) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  return {i / columns, i % columns};
}

}  // namespace cfaa::cuda
