// Cholesky factors and their inverses by products (contract: kernels/cholesky.cuh), 32 rows at a
// time. G starts as A. Step k takes the row of tiles G_k and the factor of its diagonal one,
// G_kk = L L', and makes
//
//   R_kj = L^-1 G_kj   for j != k,   R_kk = L^-1          one kernel
//   G_i  = G_i - R_ki' R_k           for the rows i > k   one GEMM, with G_ik = 0 before it
//
// To the right of the diagonal R is C' and G the Schur complement; to the left R is C^-1 and G what
// elimination makes of I, which takes the place of the columns that are done: Gauss and Jordan's
// way to factor and invert in one matrix. 2 launches a step, 20 at D = 300, and n^3 multiplications
// a matrix, nearly all of them in GEMMs.
//
// A block is a warp and has a tile of the row. Each factors the diagonal tile for itself: that
// costs less than waiting for another to do it. A lane keeps a row of it, then a column of its own
// tile, in registers; L is read from shared memory, the same element by every lane.

#include "kernels/cholesky.cuh"

#include "cuda/blas.h"
#include "cuda/launch.h"
#include "cuda/solver.h"
#include "host/core/instantiate.h"
#include "kernels/block.cuh"
#include "kernels/elementwise.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kTile = warp_threads;

// Row `lane` of the diagonal tile becomes that of its factor, and `lower` the factor by columns:
// L_rj is lower[j * kTile + r], with zeros for r < j; `inverse` is 1 / L_jj. Returns the first
// pivot that is not positive, counted from 1, or 0.
template <class T>
__device__ __forceinline__ int factor_tile(T (&row)[kTile], Shared<T> lower, Shared<T> inverse) {
  const int lane = lane_index();
  int failed = 0;
#pragma unroll
  for (int j = 0; j < kTile; ++j) {
    const T pivot = __shfl_sync(full_warp, row[j], j);
    if (!(pivot > T(0)) && failed == 0) failed = j + 1;
    const T scale = T(1) / sqrt(pivot);
    const T of_column = lane < j ? T(0) : row[j] * scale;
    lower[j * kTile + lane] = of_column;
    if (lane == j) inverse[j] = scale;
    __syncwarp();
#pragma unroll
    for (int m = j + 1; m < kTile; ++m) {
      const T factor = lower[j * kTile + m];
      row[m] -= of_column * factor;
    }
  }
  return failed;
}

// column = L^-1 column.
template <class T>
__device__ __forceinline__ void solve_column(Shared<T> lower, Shared<T> inverse,
                                             T (&column)[kTile]) {
#pragma unroll
  for (int m = 0; m < kTile; ++m) {
    const T scale = inverse[m];
    column[m] *= scale;
#pragma unroll
    for (int r = m + 1; r < kTile; ++r) {
      const T factor = lower[m * kTile + r];
      column[r] -= factor * column[m];
    }
  }
}

// Step k, tile blockIdx.x of its row. The matrix goes on as I where it ends within a tile.
// report: eliminate_row threads=32 bytes=3*S*32*D*T flops=2*S*(D/32)*32*32*32
template <class T>
__global__ void __launch_bounds__(kTile) eliminate_row(T* g,  // (S, n, n)
                                                       int n, int k,
                                                       T* rows,    // (S, n, n)  R
                                                       T* upper,   // (S, n, n)  C' of tile k
                                                       int* info)  // (S)
{
  CFAA_SHARED(T, lower, kTile * kTile);
  CFAA_SHARED(T, inverse, kTile);
  const int64_t matrix = static_cast<int64_t>(blockIdx.y) * n * n;
  const int lane = lane_index(), first = k * kTile, tile = static_cast<int>(blockIdx.x);
  const int column = tile * kTile + lane;

  T values[kTile];
#pragma unroll
  for (int c = 0; c < kTile; ++c) {
    const bool inside = first + lane < n && first + c < n;
    // Symmetric, and read along its rows: lane r's element c is row c's element r.
    values[c] = inside ? g[matrix + static_cast<int64_t>(first + c) * n + first + lane]
                       : static_cast<T>(c == lane);
  }
  const int failed = factor_tile(values, lower, inverse);

#pragma unroll
  for (int r = 0; r < kTile; ++r) {
    values[r] = static_cast<T>(r == lane);
    if (tile != k) {
      const bool inside = first + r < n && column < n;
      values[r] = inside ? g[matrix + static_cast<int64_t>(first + r) * n + column] : T(0);
    }
  }
  solve_column(lower, inverse, values);

#pragma unroll
  for (int r = 0; r < kTile; ++r) {
    const int64_t at = matrix + static_cast<int64_t>(first + r) * n + column;
    if (first + r >= n || column >= n) continue;
    rows[at] = values[r];
    if (tile == k) {
      const T turned = lower[r * kTile + lane];
      upper[at] = turned;
    }
  }
  if (tile == k && lane == 0 && failed != 0 && info[blockIdx.y] == 0) {
    info[blockIdx.y] = first + failed;
  }
  if (tile > k) {
    for (int r = 0; r < kTile && tile * kTile + r < n; ++r) {
      if (first + lane < n) {
        g[matrix + static_cast<int64_t>(tile * kTile + r) * n + first + lane] = T(0);
      }
    }
  }
}

// C' and C^-1 out of R, each with zeros where it has no tile.
// report: part_triangles threads=256 bytes=2*S*D*D*T
template <class T>
__global__ void __launch_bounds__(kElementThreads) part_triangles(T* rows,   // (S, n, n)
                                                                  T* upper,  // (S, n, n)
                                                                  int n) {
  const Element e = element_of_thread(n);
  if (e.row >= n || e.row / kTile == e.column / kTile) return;
  const int64_t at = (static_cast<int64_t>(blockIdx.y) * n + e.row) * n + e.column;
  const bool above = e.row < e.column;
  upper[at] = above ? rows[at] : T(0);
  if (above) rows[at] = T(0);
}

}  // namespace

template <class T>
void blocked_cholesky(Context& context, View<T, 3> a, View<T, 3> inverse_factor, FaultSite site) {
  CFAA_ASSERT(a.shape == inverse_factor.shape && a.shape[1] == a.shape[2]);
  CFAA_ASSERT(a.contiguous() && inverse_factor.contiguous());
  Device& device = device_of(context);
  const int64_t batch = a.shape[0], n = a.shape[1];
  const unsigned sets = static_cast<unsigned>(batch);
  const Arena::Scope scope(context.scratch());
  const auto g = context.scratch().template take<T, 3>({batch, n, n});
  int* info = context.scratch().template take<int, 1>({batch}).data;
  device.copy(g.data, a.data, static_cast<std::size_t>(a.size()) * sizeof(T));
  device.fill_zero(info, static_cast<std::size_t>(batch) * sizeof(int));

  const int64_t tiles = (n + kTile - 1) / kTile;
  for (int64_t k = 0; k < tiles; ++k) {
    launch(device.stream(), eliminate_row<T>, dim3(static_cast<unsigned>(tiles), sets), dim3(kTile),
           0, g.data, static_cast<int>(n), static_cast<int>(k), inverse_factor.data, a.data, info);
    const int64_t next = (k + 1) * kTile, left = n - next;
    if (left <= 0) break;
    const T* row = inverse_factor.data + k * kTile * n;
    gemm<T>(device, Transpose::yes, Transpose::no, -1,
            View<const T, 3>(row + next, {batch, kTile, left}, g.stride),
            View<const T, 3>(row, {batch, kTile, n}, g.stride), 1,
            View<T, 3>(g.data + next * n, {batch, left, n}, g.stride));
  }
  launch(device.stream(), part_triangles<T>, dim3(elements_grid(n * n).x, sets),
         dim3(kElementThreads), 0, inverse_factor.data, a.data, static_cast<int>(n));
  latch_reports(context, info, batch, FaultCode::not_positive_definite, site);
}

template <class T>
void inverse_cholesky(Context& context, Solver solver, View<T, 3> a, View<T, 3> inverse_factor,
                      FaultSite site) {
  if (solver == Solver::gemm) {
    blocked_cholesky<T>(context, a, inverse_factor, site);
  } else {
    inverse_cholesky_factor<T>(context, a, inverse_factor, site);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(blocked_cholesky);
CFAA_FOR_FLOAT_AND_DOUBLE(inverse_cholesky);

}  // namespace cfaa::cuda
