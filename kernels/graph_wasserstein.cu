// The distance between attribution graphs on the GPU (equations: host/ops/graph_wasserstein.h). All
// sets, and all pairs, go through each step together. With L + J = M M' by Cholesky and Y = M^-1,
// C = Y' is a factor of Sigma = Y'Y, so that R = C_S' C_T = Y_S Y_T'. With RR' = W diag(s^2) W':
//
//   C_S (U S U') C_S'                     = F_S' F_S,   F_S = diag(s^(1/2))  W' Y_S
//   C_T (V S V') C_T',  R Y_T = Y_S Sigma_T  = F_T' F_T,   F_T = diag(s^(-1/2)) W' Y_S Sigma_T
//
// which keeps both symmetric and needs no inverse of R.

#include <limits>

#include "cuda/blas.h"
#include "cuda/launch.h"
#include "cuda/solver.h"
#include "host/ops/graph_wasserstein.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 256;

// A = (|B| + |B'|)/2 + floor off the diagonal, L = diag(A 1) - A, and L + J. One block per row of a
// set; the degree is summed in double.
template <class T>
__global__ void laplacian(const double* b,  // (S, D, D)
                          double floor, int d,
                          T* out,      // (S, D, D)  L
                          T* plus_j)   // (S, D, D)  L + J
{
  const int64_t s = blockIdx.y, row = blockIdx.x;
  const double* set = b + s * d * d;
  const int64_t start = (s * d + row) * d;
  const double j_part = 1.0 / d;
  double degree = 0;
  for (int64_t column = threadIdx.x; column < d; column += blockDim.x) {
    if (column == row) continue;
    const double a = (fabs(set[row * d + column]) + fabs(set[column * d + row])) / 2 + floor;
    degree += a;
    out[start + column] = static_cast<T>(-a);
    plus_j[start + column] = static_cast<T>(j_part - a);
  }
  degree = block_sum(degree);
  if (threadIdx.x == 0) {
    out[start + row] = static_cast<T>(degree);
    plus_j[start + row] = static_cast<T>(degree + j_part);
  }
}

// d_W = Tr Sigma_S + Tr Sigma_T - 2 sum_j s_j, added in double. One block per pair.
template <class T>
__global__ void distance(const T* sigma,   // (2P, D, D)
                         const T* values,  // (P, D)  s^2
                         int pairs, int d,
                         T* out)  // (P)
{
  const int64_t p = blockIdx.x;
  const int64_t size = static_cast<int64_t>(d) * d;
  double sum = 0;
  for (int64_t j = threadIdx.x; j < d; j += blockDim.x) {
    const int64_t diagonal = j * (d + 1);
    const double value = static_cast<double>(values[p * d + j]);
    sum += static_cast<double>(sigma[p * size + diagonal]) +
           static_cast<double>(sigma[(pairs + p) * size + diagonal]) - 2 * sqrt(fmax(value, 0.0));
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[p] = static_cast<T>(sum);
}

// Rows of W' times s^(1/2) for the source and s^(-1/2) for the target. Squares below the rounding of
// the largest are noise: they are held there, so that the target's factor stays bounded.
template <class T>
__global__ void weigh_eigenvectors(const T* vectors,  // (P, D, D)  row j for values_j
                                   const T* values,   // (P, D)  s^2, ascending
                                   int pairs, int d,
                                   T* out)  // (2P, D, D)
{
  const int64_t p = blockIdx.y;
  const int size = d * d;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const T least = values[p * d + d - 1] * std::numeric_limits<T>::epsilon();
  const T value = values[p * d + i / d];
  const T root = sqrt(sqrt(value > least ? value : least));
  const T vector = vectors[p * size + i];
  out[p * size + i] = vector * root;
  out[(pairs + p) * size + i] = vector / root;
}

// dA_ij = dL_ii - dL_ij,  dB = sign(B) o (dA + dA')/2
template <class T>
__global__ void edge_gradient(const double* b,  // (S, D, D)
                              const T* dl,      // (S, D, D)  gradient of L, symmetric up to rounding
                              int d,
                              double* out)  // (S, D, D)
{
  const int64_t s = blockIdx.y;
  const int size = d * d;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const int row = i / d, column = i % d;
  const T* set = dl + s * size;
  const double edge = (static_cast<double>(set[row * (d + 1)]) - static_cast<double>(set[i]) +
                       static_cast<double>(set[column * (d + 1)]) -
                       static_cast<double>(set[column * d + row])) /
                      2;
  const double value = b[s * size + i];
  out[s * size + i] = value > 0 ? edge : value < 0 ? -edge : 0.0;
}

// Problems first .. first + count of a batch.
template <class T>
View<T, 3> problems(View<T, 3> batch, int64_t first, int64_t count) {
  return {batch.data + first * batch.stride[0],
          {count, batch.shape[1], batch.shape[2]},
          batch.stride};
}

}  // namespace

template <class T>
void graph_wasserstein(Context& context, View<const double, 3> b, double graph_floor,
                       const GraphWasserstein<T>& result) {
  Device& device = device_of(context);
  Arena& arena = context.scratch();
  const cudaStream_t stream = device.stream();
  const int64_t sets = b.shape[0], pairs = sets / 2, n = b.shape[1];
  const int d = static_cast<int>(n), p = static_cast<int>(pairs);
  const unsigned blocks = static_cast<unsigned>((n * n + kThreads - 1) / kThreads);
  const dim3 block(kThreads);
  const auto work = arena.template take<T, 3>({sets, n, n});
  const auto y = arena.template take<T, 3>({sets, n, n});
  const auto sigma = arena.template take<T, 3>({sets, n, n});
  const auto weighed = arena.template take<T, 3>({sets, n, n});
  const auto r = arena.template take<T, 3>({pairs, n, n});
  const auto rr = arena.template take<T, 3>({pairs, n, n});
  const auto values = arena.template take<T, 2>({pairs, n});
  const auto y_source = problems(y, 0, pairs), y_target = problems(y, pairs, pairs);

  // Sigma = (L + J)^-1 = Y'Y
  launch(stream, laplacian<T>, dim3(static_cast<unsigned>(n), static_cast<unsigned>(sets)), block,
         0, b.data, graph_floor, d, result.laplacian.data, work.data);
  inverse_cholesky_factor<T>(context, work, y, FaultSite::graph);
  gemm<T>(device, Transpose::yes, Transpose::no, 1, y, y, 0, sigma);

  // R = Y_S Y_T', its singular values and left vectors
  gemm<T>(device, Transpose::no, Transpose::yes, 1, y_source, y_target, 0, r);
  gemm<T>(device, Transpose::no, Transpose::yes, 1, r, r, 0, rr);
  eigen_symmetric<T>(context, rr, values, Eigenvectors::yes, FaultSite::wasserstein);
  launch(stream, distance<T>, dim3(static_cast<unsigned>(pairs)), block, 0, sigma.data, values.data,
         p, d, result.distance.data);

  // dL = F'F - Sigma^2
  launch(stream, weigh_eigenvectors<T>, dim3(blocks, static_cast<unsigned>(pairs)), block, 0,
         rr.data, values.data, p, d, weighed.data);
  gemm<T>(device, Transpose::no, Transpose::no, 1, r, y_target, 0, rr);
  device.copy(y_target.data, rr.data, static_cast<std::size_t>(rr.size()) * sizeof(T));
  gemm<T>(device, Transpose::no, Transpose::no, 1, weighed, y, 0, work);
  gemm<T>(device, Transpose::no, Transpose::no, -1, sigma, sigma, 0, weighed);
  gemm<T>(device, Transpose::yes, Transpose::no, 1, work, work, 1, weighed);
  launch(stream, edge_gradient<T>, dim3(blocks, static_cast<unsigned>(sets)), block, 0, b.data,
         weighed.data, d, result.b_gradient.data);
}

template void graph_wasserstein<float>(Context&, View<const double, 3>, double,
                                       const GraphWasserstein<float>&);
template void graph_wasserstein<double>(Context&, View<const double, 3>, double,
                                        const GraphWasserstein<double>&);

}  // namespace cfaa::cuda
