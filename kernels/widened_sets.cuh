#pragma once

// Embedding sets in double, as SLIM wants them: rows of every set side by side in one (S, rows, D)
// array, a bounded number at a time, so that sets of different N share one batched GEMM.

#include <algorithm>
#include <span>

#include "cuda/launch.h"
#include "host/core/error.h"
#include "host/ops/embedding_pair.h"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {

inline constexpr int kMaxSets = 2 * kMaxPairs;
// Rows widened at a time: bounds the scratch whatever N is.
inline constexpr int64_t kChunkRows = 1024;

// A thread per element of a (rows, columns) matrix, a layer of the grid per set.
inline dim3 elementwise(int64_t size, int64_t sets) {
  CFAA_ASSERT(size <= INT32_MAX);
  return dim3(static_cast<unsigned>((size + kElementThreads - 1) / kElementThreads),
              static_cast<unsigned>(sets));
}

// The sets as kernels see them. Passed by value: no copy to the device, nothing to wait for.
template <class T>
struct Sets {
  T* data[kMaxSets];         // each (N, D)
  int64_t stride[kMaxSets];  // between rows
  int64_t rows[kMaxSets];    // N

  template <class F>
  void for_each_pointer(F f) const {
    for (T* pointer : data) f(pointer);
  }
};

template <class T>
Sets<T> pack(std::span<const MatrixView<T>> views) {
  CFAA_ASSERT(views.size() <= kMaxSets);
  Sets<T> sets{};
  for (std::size_t s = 0; s < views.size(); ++s) {
    sets.data[s] = views[s].data;
    sets.stride[s] = views[s].stride[0];
    sets.rows[s] = views[s].rows();
  }
  return sets;
}

template <class T>
int64_t most_rows(std::span<const MatrixView<const T>> sets) {
  int64_t rows = 0;
  for (const MatrixView<const T>& set : sets) rows = std::max(rows, set.rows());
  return rows;
}

// Rows first .. first + chunk of each set; those past a set's end are zero.
// report: widen threads=256 bytes=S*N*D*(T+8)
template <class T>
__global__ void widen(Sets<const T> sets, int64_t first, int chunk, int d,
                      double* out)  // (S, chunk, D)
{
  const int64_t s = blockIdx.y;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= chunk * d) return;
  const int64_t row = first + i / d;
  out[s * chunk * d + i] =
      row < sets.rows[s] ? static_cast<double>(sets.data[s][row * sets.stride[s] + i % d]) : 0.0;
}

// As many rows from `first` on as there are, or as fit the buffer (S, chunk, D).
template <class T>
View<const double, 3> widened_rows(cudaStream_t stream, std::span<const MatrixView<const T>> sets,
                                   int64_t first, View<double, 3> buffer) {
  const int64_t s = buffer.shape[0], d = buffer.shape[2];
  const int64_t rows = std::min(buffer.shape[1], most_rows(sets) - first);
  launch(stream, widen<T>, elementwise(rows * d, s), dim3(kElementThreads), 0, pack(sets), first,
         static_cast<int>(rows), static_cast<int>(d), buffer.data);
  return View<double, 3>(buffer.data, {s, rows, d});
}

}  // namespace cfaa::cuda
