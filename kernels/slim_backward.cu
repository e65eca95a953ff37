// SLIM's backward on the GPU (equations: host/ops/slim.h), all sets together. Both steps have
// I - B = Theta W, with W = nu Xi + diag(gamma) or diag(1 / Theta_jj), and in both dTheta = -H W,
// where H is G with h_j = -sum_i G_ij Theta_ij / Theta_jj on its diagonal. So Xi and gamma drop
// out:
//
//   dGram = -Theta dTheta Theta = Theta H W Theta = (Theta H)(I - B)'

#include "cuda/blas.h"
#include "cuda/launch.h"
#include "cuda/nvtx.h"
#include "host/ops/slim.h"
#include "kernels/block.cuh"
#include "kernels/widened_sets.cuh"

namespace cfaa::cuda {
namespace {

// H. One block per 32 columns of a set, a warp for every 16th row.
constexpr int kColumns = 32, kRowsAtOnce = 16;
// report: constrain_gradient threads=512 bytes=24*S*D*D flops=2*S*D*D fp64
__global__ void constrain_gradient(const double* b_gradient,  // (S, D, D)  G; diagonal ignored
                                   const double* theta,       // (S, D, D)
                                   int d,
                                   double* h)  // (S, D, D)
{
  CFAA_SHARED(double, parts, kColumns* kRowsAtOnce);
  const int64_t s = blockIdx.y;
  const int lane = lane_index(), warp = warp_index();
  const int column = static_cast<int>(blockIdx.x) * kColumns + lane;
  double sum = 0;
  if (column < d) {
    for (int row = warp; row < d; row += kRowsAtOnce) {
      if (row == column) continue;
      const int64_t at = (s * d + row) * d + column;
      const double value = b_gradient[at];
      h[at] = value;
      sum -= value * theta[at];
    }
  }
  parts[warp * kColumns + lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= d) return;
  double total = 0;
  for (int part = 0; part < kRowsAtOnce; ++part) {
    const double next = parts[part * kColumns + lane];
    total += next;
  }
  const int64_t diagonal = (s * d + column) * d + column;
  h[diagonal] = total / theta[diagonal];
}

// out = scale (P + P')
// report: add_transpose threads=256 bytes=16*S*D*D flops=2*S*D*D fp64
__global__ void add_transpose(const double* p,  // (S, D, D)
                              double scale, int d,
                              double* out)  // (S, D, D)
{
  const int64_t s = blockIdx.y;
  const int size = d * d;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const double* set = p + s * size;
  out[s * size + i] = scale * (set[i] + set[i % d * d + i / d]);
}

// report: add_rows threads=256 bytes=S*N*D*(8+2*T) flops=S*N*D
template <class T>
__global__ void add_rows(const double* values,  // (S, chunk, D)
                         int64_t first, int chunk, int d, Sets<T> sets) {
  const int64_t s = blockIdx.y;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= chunk * d) return;
  const int64_t row = first + i / d;
  if (row >= sets.rows[s]) return;
  T* to = sets.data[s] + row * sets.stride[s] + i % d;
  *to = static_cast<T>(*to + values[s * chunk * d + i]);
}

}  // namespace

template <class T>
void slim_backward(Context& context, std::span<const MatrixView<const T>> sets, const SlimOptions&,
                   const Slim& forward, View<const double, 3> b_gradient, double scale,
                   std::span<const MatrixView<T>> gradients) {
  const Range range("SLIM backward");
  Device& device = device_of(context);
  Arena& arena = context.scratch();
  const cudaStream_t stream = device.stream();
  const int64_t s = forward.b.shape[0], n = forward.b.shape[1];
  const int d = static_cast<int>(n);
  const auto h = arena.take<double, 3>({s, n, n});
  const auto theta_h = arena.take<double, 3>({s, n, n});

  // dGram = Theta H - Theta H B'
  launch(stream, constrain_gradient,
         dim3(static_cast<unsigned>((n + kColumns - 1) / kColumns), static_cast<unsigned>(s)),
         dim3(kColumns * kRowsAtOnce), 0, b_gradient.data, forward.theta.data, d, h.data);
  gemm<double>(device, Transpose::no, Transpose::no, 1, forward.theta, h, 0, theta_h);
  device.copy(h.data, theta_h.data, static_cast<std::size_t>(h.size()) * sizeof(double));
  gemm<double>(device, Transpose::no, Transpose::yes, -1, theta_h, forward.b, 1, h);
  const auto symmetric = theta_h;
  launch(stream, add_transpose, elementwise(n * n, s), dim3(kElementThreads), 0, h.data, scale, d,
         symmetric.data);

  // dZ += Z (dGram + dGram'), chunk by chunk
  const int64_t chunk = std::min(kChunkRows, most_rows(sets));
  const auto buffer = arena.take<double, 3>({s, chunk, n});
  const auto out = arena.take<double, 3>({s, chunk, n});
  for (int64_t first = 0; first < most_rows(sets); first += kChunkRows) {
    const View<const double, 3> z = widened_rows(stream, sets, first, buffer);
    const int64_t rows = z.shape[1];
    gemm<double>(device, Transpose::no, Transpose::no, 1, z, symmetric, 0,
                 View<double, 3>(out.data, z.shape));
    launch(stream, add_rows<T>, elementwise(rows * n, s), dim3(kElementThreads), 0, out.data, first,
           static_cast<int>(rows), d, pack(gradients));
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(slim_backward);

}  // namespace cfaa::cuda
