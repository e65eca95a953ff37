#pragma once

// A matrix in registers, summed along both sides, as Sinkhorn's iterations and the typical samples
// do again and again. Sixteen lanes, half a warp, hold some rows of it whole:
//
//   lane l of 16, entry (r, c)   row `first row of these lanes` + r, column l + 16 c
//
// A row is then combined by shuffles alone. A column meets in shared memory, a part per warp. Both
// are combined in a fixed order, so that the bits are the same on every run.

#include "kernels/block.cuh"

namespace cfaa::cuda {

inline constexpr int kTileLanes = 16;

__device__ __forceinline__ int tile_lane() {
  return lane_index() % kTileLanes;
}

// Which of the block's groups of 16 lanes this is.
__device__ __forceinline__ int tile_group() {
  return static_cast<int>(threadIdx.x) / kTileLanes;
}

// The row, of `rows` of these lanes, whose total combine_rows gives this lane. 16 / rows lanes have
// the same one; the first of them is its owner.
template <int rows>
__device__ __forceinline__ int tile_row() {
  return tile_lane() / (kTileLanes / rows);
}
template <int rows>
__device__ __forceinline__ bool owns_tile_row() {
  return tile_lane() % (kTileLanes / rows) == 0;
}

// values[r]: this lane's part of row r. Returns the total of row tile_row<rows>(). Each step sends
// half of what is left to the lane that goes on with it: rows - 1 + log2(16 / rows) shuffles in
// place of 4 rows.
template <int rows, int lanes = kTileLanes / 2, int capacity, class T, class Combine>
__device__ __forceinline__ T combine_rows(T (&values)[capacity], Combine combine) {
  constexpr int left = rows > 1 ? rows / 2 : 1;
  const bool upper = (lane_index() & lanes) != 0;
#pragma unroll
  for (int r = 0; r < left; ++r) {
    T kept = values[r], sent = values[r];
    if constexpr (rows > 1) {
      const T other = values[r + left];
      kept = upper ? other : kept;
      sent = upper ? sent : other;
    }
    values[r] = combine(kept, __shfl_xor_sync(full_warp, sent, lanes));
  }
  if constexpr (lanes > 1) {
    return combine_rows<left, lanes / 2>(values, combine);
  } else {
    return values[0];
  }
}

// The way back: values[r] of every lane becomes `own` of the lanes that have row r.
template <int rows, class T>
__device__ __forceinline__ void spread_rows(T own, T (&values)[rows]) {
  const int first = lane_index() & kTileLanes;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    values[r] = __shfl_sync(full_warp, own, first + r * (kTileLanes / rows));
  }
}

// values[c]: this lane's part of column l + 16 c. Leaves the warp's parts in `parts`
// (warps, 16 columns), for column_total after a barrier. The lanes' two halves write
// neighbouring columns, so that no two of them meet in a bank.
template <int columns, class T, class Combine>
__device__ __forceinline__ void put_columns(const Shared<T>& parts, const T (&values)[columns],
                                            Combine combine) {
  const bool upper = lane_index() >= kTileLanes;
  const int first = warp_index() * kTileLanes * columns + lane_index();
#pragma unroll
  for (int c = 0; c < columns; c += 2) {
    const T kept = upper ? values[c + 1] : values[c];
    const T sent = upper ? values[c] : values[c + 1];
    parts[first + kTileLanes * c] = combine(kept, __shfl_xor_sync(full_warp, sent, kTileLanes));
  }
}

template <int columns, int warps, class T, class Combine>
__device__ __forceinline__ T column_total(const Shared<T>& parts, int column, Combine combine) {
  T total = parts[column];
#pragma unroll
  for (int warp = 1; warp < warps; ++warp) {
    const T part = parts[warp * kTileLanes * columns + column];
    total = combine(total, part);
  }
  return total;
}

// R rows of every 16 lanes, C columns of a lane, in a block of so many warps: R a group of 16 lanes
// by 16 C in all.
template <class T, int R, int C, int warps>
struct LaneTile {
  T entry[R][C];

  __device__ int row(int r) const { return tile_group() * R + r; }
  __device__ int column(int c) const { return tile_lane() + kTileLanes * c; }
  // Whose total over_columns gives this lane.
  __device__ int own_row() const { return row(tile_row<R>()); }

  // vector's elements of this lane's rows, and of its columns.
  __device__ void load_rows(const Shared<T>& vector, T (&values)[R]) const {
#pragma unroll
    for (int r = 0; r < R; ++r) values[r] = vector[row(r)];
  }
  __device__ void load_columns(const Shared<T>& vector, T (&values)[C]) const {
#pragma unroll
    for (int c = 0; c < C; ++c) values[c] = vector[column(c)];
  }

  // Of own_row(), over its columns: total = add(total, r, c), from `zero`.
  template <class Add, class Combine>
  __device__ T over_columns(T zero, Add add, Combine combine) {
    T totals[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      totals[r] = zero;
#pragma unroll
      for (int c = 0; c < C; ++c) totals[r] = add(totals[r], r, c);
    }
    return combine_rows<R>(totals, combine);
  }

  // Of every column, over this warp's rows: into `parts`, for total_over_rows after a barrier.
  template <class Add, class Combine>
  __device__ void over_rows(const Shared<T>& parts, T zero, Add add, Combine combine) {
    T totals[C];
#pragma unroll
    for (int c = 0; c < C; ++c) {
      totals[c] = zero;
#pragma unroll
      for (int r = 0; r < R; ++r) totals[c] = add(totals[c], r, c);
    }
    put_columns(parts, totals, combine);
  }
  template <class Combine>
  __device__ T total_over_rows(const Shared<T>& parts, int column, Combine combine) const {
    return column_total<C, warps>(parts, column, combine);
  }
};

}  // namespace cfaa::cuda
