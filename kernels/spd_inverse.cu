// The inverse of a symmetric positive definite matrix on the GPU (contract:
// host/ops/spd_inverse.h): cuSOLVER's potrf and potri, then the triangle they leave is copied to
// the other.

#include "host/ops/spd_inverse.h"

#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/solver.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kRows = 8;  // of a tile at a time

// a(c, r) = a(r, c) for c < r. Each block turns one 32 x 32 tile in shared memory, so that reads
// and writes both run along rows; 33 columns keep the banks apart.
// report: mirror_kernel threads=256 bytes=D*D*T
template <class T>
__global__ void __launch_bounds__(kTile* kRows) mirror_kernel(T* a, int n) {
  CFAA_SHARED(T, tile, kTile * (kTile + 1));
  if (blockIdx.x > blockIdx.y) return;
  const int column = static_cast<int>(threadIdx.x) % kTile,
            row = static_cast<int>(threadIdx.x) / kTile;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int r = row; r < kTile; r += kRows) {
    if (first_row + r < n && first_column + column < n) {
      tile[r * (kTile + 1) + column] = a[(first_row + r) * n + first_column + column];
    }
  }
  __syncthreads();
  for (int c = row; c < kTile; c += kRows) {
    const int64_t to_row = first_column + c, to_column = first_row + column;
    if (to_row < to_column && to_column < n) {
      const T turned = tile[column * (kTile + 1) + c];
      a[to_row * n + to_column] = turned;
    }
  }
}

}  // namespace

template <class T>
int64_t spd_inverse(Context& context, MatrixView<T> a) {
  if (const int minor = inverse_of_lower_triangle(context, a)) return minor;
  const auto tiles = static_cast<unsigned>((a.rows() + kTile - 1) / kTile);
  launch(device_of(context).stream(), mirror_kernel<T>, dim3(tiles, tiles), dim3(kTile * kRows), 0,
         a.data, static_cast<int>(a.rows()));
  return 0;
}

CFAA_FOR_FLOAT_AND_DOUBLE(spd_inverse);

}  // namespace cfaa::cuda
