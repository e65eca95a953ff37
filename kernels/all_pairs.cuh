#pragma once

// One block, one problem, all pairs (row, column): per row, something added up over all columns, as
// both the typical samples and the couplings do again and again.
//
// A warp takes a segment of the columns and its lanes four rows each, so that what is loaded for a
// column serves four rows and neighbouring lanes read neighbouring rows. The warps' parts meet in
// shared memory and are merged in the order of the segments: same bits on every run, no atomics.

#include <type_traits>

#include "kernels/block.cuh"

namespace cfaa::cuda {

inline constexpr int kPairThreads = 256;
inline constexpr int kPairWarps = kPairThreads / 32;
inline constexpr int kRowsPerLane = 4;
inline constexpr int kRowsPerPass = 32 * kRowsPerLane;

// What is added up: one or two numbers.
template <class T>
struct Two {
  T a, b;
};

// (kPairWarps, kRowsPerPass)
template <class T>
using Partials = Shared<Two<T>>;

template <class T>
__device__ Partials<T> take_partials(SharedArena& arena) {
  return arena.take<Two<T>>(kPairWarps * kRowsPerPass);
}

template <class T>
constexpr std::size_t partials_bytes() {
  return shared_bytes<Two<T>>(kPairWarps * kRowsPerPass);
}

// A vector of the block: in shared memory, or in the block's part of global scratch when it is too
// long for that. Vector is Shared<T> or T*.
template <class Vector, class T>
__device__ Vector take_vector(SharedArena& arena, T*& scratch, int count) {
  if constexpr (std::is_pointer_v<Vector>) {
    T* memory = scratch;
    scratch += count;
    return memory;
  } else {
    return arena.take<T>(count);
  }
}

// For every row: total = zero; add(total, load_row(row), load_column(c)) for all columns c;
// finish(row, total). merge(total, other) joins the totals of two segments. All threads of the
// block call it; what `finish` wrote is visible to all of them on return.
template <class T, class LoadRow, class LoadColumn, class Add, class Merge, class Finish>
__device__ void reduce_rows(int rows, int columns, Partials<T> partials, Two<T> zero,
                            LoadRow load_row, LoadColumn load_column, Add add, Merge merge,
                            Finish finish) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int begin = static_cast<int>(static_cast<int64_t>(columns) * warp / kPairWarps);
  const int end = static_cast<int>(static_cast<int64_t>(columns) * (warp + 1) / kPairWarps);

  for (int base = 0; base < rows; base += kRowsPerPass) {
    // Lanes past the last row repeat it: cheaper than a branch in the loop, and never written out.
    decltype(load_row(0)) row[kRowsPerLane];
    Two<T> total[kRowsPerLane];
    for (int r = 0; r < kRowsPerLane; ++r) {
      row[r] = load_row(min(base + 32 * r + lane, rows - 1));
      total[r] = zero;
    }
    for (int c = begin; c < end; ++c) {
      const auto column = load_column(c);
      for (int r = 0; r < kRowsPerLane; ++r) add(total[r], row[r], column);
    }
    for (int r = 0; r < kRowsPerLane; ++r) {
      partials[warp * kRowsPerPass + 32 * r + lane] = total[r];
    }
    __syncthreads();

    if (thread < kRowsPerPass && base + thread < rows) {
      Two<T> sum = partials[thread];
      for (int w = 1; w < kPairWarps; ++w) {
        const Two<T> other = partials[w * kRowsPerPass + thread];
        merge(sum, other);
      }
      finish(base + thread, sum);
    }
    __syncthreads();
  }
}

// reduce_rows for plain sums.
template <class T, class LoadRow, class LoadColumn, class Add, class Finish>
__device__ void sum_rows(int rows, int columns, Partials<T> partials, LoadRow load_row,
                         LoadColumn load_column, Add add, Finish finish) {
  reduce_rows<T>(
      rows, columns, partials, Two<T>{0, 0}, load_row, load_column, add,
      [](Two<T>& sum, const Two<T>& other) {
        sum.a += other.a;
        sum.b += other.b;
      },
      finish);
}

}  // namespace cfaa::cuda
