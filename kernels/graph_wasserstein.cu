// The distance between attribution graphs on the GPU (equations: host/ops/graph_wasserstein.h); all
// sets, and all pairs, go through each step together. With L + J = K K' by Cholesky and Y = K^-1,
// C = Y' is a factor of Sigma, and R = C_S' C_T = Y_S Y_T'. Let Q = (RR')^(-1/2) R be R's polar
// factor and E = C_T - C_S Q what is left when C_S is turned onto C_T. Then
//
//   d_W = |E|^2,   dL_S = Sigma_S E (C_S Q)',   dL_T = -Sigma_T E C_T'   (up to transposition)
//
// which is the header's without its cancellation: Tr Sigma_S + Tr Sigma_T - 2 |R|_* loses
// log10(Tr Sigma / d_W) digits, more than float has to spare, where an error of Q, the minimiser of
// |C_T - C_S Q|, enters |E|^2 squared. Written with Y, E' and X = (C_S Q)' = Q'Y_S every operand is
// read along its rows:
//
//   E' = Y_T - X,   dL_S = Y_S' (Y_S E) X,   dL_T = -Y_T' (Y_T E) Y_T
//
// Q is made in double: of R by products (kernels/polar.cuh), or as (RR')^(-1/2) R by cuSOLVER's
// eigenvectors, which squares R's condition.

#include <limits>

#include "cuda/blas.h"
#include "cuda/launch.h"
#include "cuda/nvtx.h"
#include "cuda/solver.h"
#include "host/ops/graph_wasserstein.h"
#include "kernels/block.cuh"
#include "kernels/cholesky.cuh"
#include "kernels/latch.cuh"
#include "kernels/polar.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::size_t kPolarSteps = 12;

// A = (|B| + |B'|)/2 + floor off the diagonal, L = diag(A 1) - A, and L + J. One block per row of a
// set; the degree is summed in double.
// report: laplacian threads=256 bytes=S*D*D*(8+2*T) flops=4*S*D*D fp64
template <class T>
__global__ void laplacian(const double* b,  // (2P, D, D)
                          double floor, int d,
                          T* out,     // (2P, D, D)  L
                          T* plus_j)  // (2P, D, D)  L + J
{
  const int64_t s = blockIdx.y;
  const int row = static_cast<int>(blockIdx.x);
  const double* set = b + s * d * d;
  const int64_t start = (s * d + row) * d;
  const double j_part = 1.0 / d;
  double degree = 0;
  for (int column = static_cast<int>(threadIdx.x); column < d; column += kThreads) {
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

// report: convert threads=256 bytes=12*P*D*D
template <class From, class To>
__global__ void convert(const From* from,  // (P, D, D)
                        int size,
                        To* to)  // (P, D, D)
{
  const int64_t p = blockIdx.y;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) to[p * size + i] = static_cast<To>(from[p * size + i]);
}

// Row j, the eigenvector of RR' for values_j = s_j^2, times s_j^(-1/2): the rows' Gram matrix then
// is (RR')^(-1/2). Values below the rounding of the largest are noise and are held there.
// report: weigh_eigenvectors threads=256 bytes=16*P*D*D flops=4*P*D*D fp64
__global__ void weigh_eigenvectors(const double* values,  // (P, D)  ascending
                                   int d,
                                   double* vectors)  // (P, D, D)
{
  const int64_t p = blockIdx.y;
  const int size = d * d;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const double least = values[p * d + d - 1] * std::numeric_limits<double>::epsilon();
  const double value = fmax(values[p * d + i / d], least);
  vectors[p * size + i] *= 1 / sqrt(sqrt(value));
}

// At least this much is every singular value of R: as R^-1 = K_T'K_S, it is 1 / (|K_S| |K_T|), and
// |K|^2 = |L + J| <= max(1, 2 max_i L_ii). One block per pair.
// report: least_singular threads=256 bytes=2*P*D*T
template <class T>
__global__ void least_singular(const T* laplacian,  // (2P, D, D)
                               int pairs, int d,
                               double* least)  // (P)
{
  const int64_t p = blockIdx.x;
  double bound = 1;
  for (int side = 0; side < 2; ++side) {
    const T* set = laplacian + (p + side * pairs) * d * d;
    double degree = 0.5;
    for (int j = static_cast<int>(threadIdx.x); j < d; j += kThreads) {
      degree = fmax(degree, static_cast<double>(set[j * (d + 1)]));
    }
    bound *= 2 * block_max(degree);
  }
  if (threadIdx.x == 0) least[p] = 1 / sqrt(bound);
}

// E' = Y_T - X, for the source's gradient and the target's; -Y_T, the target's right factor, beside
// X, the source's; and the rows' shares of |E|^2. One block per row of a pair.
// report: residual threads=256 bytes=5*P*D*D*T flops=3*P*D*D
template <class T>
__global__ void residual(const T* y,  // (2P, D, D)
                         int pairs, int d,
                         T* right,        // (2P, D, D)  X given; -Y_T written
                         T* e,            // (2P, D, D)  E' twice
                         double* shares)  // (P, D)
{
  const int64_t p = blockIdx.y;
  const int row = static_cast<int>(blockIdx.x);
  const int64_t source = (p * d + row) * d, target = ((pairs + p) * d + row) * d;
  double sum = 0;
  for (int column = static_cast<int>(threadIdx.x); column < d; column += kThreads) {
    const T y_target = y[target + column];
    const T left = y_target - right[source + column];
    e[source + column] = left;
    e[target + column] = left;
    right[target + column] = -y_target;
    sum += static_cast<double>(left) * static_cast<double>(left);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) shares[p * d + row] = sum;
}

// d_W = |E|^2. One block per pair.
// report: distance threads=256 bytes=8*P*D flops=P*D fp64
template <class T>
__global__ void distance(const double* shares,  // (P, D)
                         int d,
                         T* out,  // (P)
                         Fault* latch) {
  const int64_t p = blockIdx.x;
  double sum = 0;
  for (int j = static_cast<int>(threadIdx.x); j < d; j += kThreads) sum += shares[p * d + j];
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  out[p] = static_cast<T>(sum);
  if (!(fabs(sum) <= std::numeric_limits<double>::max())) {
    latch_fault(latch, FaultCode::not_finite, FaultSite::wasserstein, static_cast<int>(p), -1);
  }
}

// dA_ij = dL_ii - dL_ij,  dB = sign(B) o (dA + dA')/2
// report: edge_gradient threads=256 bytes=S*D*D*(16+T) flops=4*S*D*D fp64
template <class T>
__global__ void edge_gradient(const double* b,  // (2P, D, D)
                              const T* dl,      // (2P, D, D)  only its symmetric part counts
                              int d,
                              double* out)  // (2P, D, D)
{
  const int64_t s = blockIdx.y;
  const int size = d * d;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const int row = i / d, column = i % d;
  const T* set = dl + s * size;
  const double diagonal = static_cast<double>(set[row * (d + 1)]) + set[column * (d + 1)];
  const double across = static_cast<double>(set[i]) + set[column * d + row];
  const double value = b[s * size + i];
  out[s * size + i] = value == 0 ? 0.0 : copysign(0.5, value) * (diagonal - across);
}

// Problems first .. first + count of a batch.
template <class T>
View<T, 3> problems(View<T, 3> batch, int64_t first, int64_t count) {
  return {
      batch.data + first * batch.stride[0], {count, batch.shape[1], batch.shape[2]}, batch.stride};
}

// x (P, D, D) becomes (xx')^(-1/2) x, by cuSOLVER.
void polar_by_eigenvectors(Context& context, View<double, 3> x) {
  Device& device = device_of(context);
  const int64_t pairs = x.shape[0], n = x.shape[1];
  const Arena::Scope scope(context.scratch());
  const auto square = context.scratch().take<double, 3>({pairs, n, n});
  const auto root = context.scratch().take<double, 3>({pairs, n, n});
  const auto values = context.scratch().take<double, 2>({pairs, n});
  gemm<double>(device, Transpose::no, Transpose::yes, 1, x, x, 0, square);
  eigen_symmetric<double>(context, square, values, Eigenvectors::yes, FaultSite::wasserstein);
  launch(
      device.stream(), weigh_eigenvectors,
      dim3(static_cast<unsigned>((n * n + kThreads - 1) / kThreads), static_cast<unsigned>(pairs)),
      dim3(kThreads), 0, values.data, static_cast<int>(n), square.data);
  gemm<double>(device, Transpose::yes, Transpose::no, 1, square, square, 0, root);
  gemm<double>(device, Transpose::no, Transpose::no, 1, root, x, 0, square);
  device.copy(x.data, square.data, static_cast<std::size_t>(x.size()) * sizeof(double));
}

}  // namespace

template <class T>
void graph_wasserstein(Context& context, View<const double, 3> b, double graph_floor, Solver solver,
                       const GraphWasserstein<T>& result) {
  const Range range("graph Wasserstein");
  Device& device = device_of(context);
  Arena& arena = context.scratch();
  const cudaStream_t stream = device.stream();
  const int64_t sets = b.shape[0], pairs = sets / 2, n = b.shape[1];
  const int d = static_cast<int>(n), p = static_cast<int>(pairs);
  const unsigned columns = static_cast<unsigned>(n), layers = static_cast<unsigned>(pairs);
  const dim3 block(kThreads), elements((columns * columns + kThreads - 1) / kThreads, layers);
  const auto y = arena.template take<T, 3>({sets, n, n});
  const auto right = arena.template take<T, 3>({sets, n, n});
  const auto work = arena.template take<T, 3>({sets, n, n});
  const auto r = arena.template take<T, 3>({pairs, n, n});
  const auto shares = arena.template take<double, 2>({pairs, n});
  const auto wide = arena.template take<double, 3>({pairs, n, n});
  const auto y_source = problems(y, 0, pairs), y_target = problems(y, pairs, pairs);
  const auto q = problems(work, 0, pairs);

  // L and Y
  launch(stream, laplacian<T>, dim3(columns, 2 * layers), block, 0, b.data, graph_floor, d,
         result.laplacian.data, work.data);
  inverse_cholesky<T>(context, solver, work, y, FaultSite::graph);

  // R and Q
  gemm<T>(device, Transpose::no, Transpose::yes, 1, y_source, y_target, 0, r);
  launch(stream, convert<T, double>, elements, block, 0, r.data, d * d, wide.data);
  if (solver == Solver::gemm) {
    const auto least = arena.template take<double, 1>({pairs});
    launch(stream, least_singular<T>, dim3(layers), block, 0, result.laplacian.data, p, d,
           least.data);
    polar_factor(context, wide, least.data, kPolarSteps, FaultSite::wasserstein);
  } else {
    polar_by_eigenvectors(context, wide);
  }
  launch(stream, convert<double, T>, elements, block, 0, wide.data, d * d, q.data);

  // X = Q'Y_S and d_W
  gemm<T>(device, Transpose::yes, Transpose::no, 1, q, y_source, 0, problems(right, 0, pairs));
  launch(stream, residual<T>, dim3(columns, layers), block, 0, y.data, p, d, right.data, work.data,
         shares.data);
  launch(stream, distance<T>, dim3(layers), block, 0, shares.data, d, result.distance.data,
         context.fault_latch());

  // dL = Y' (Y E) [X or -Y_T]
  const auto y_e = arena.template take<T, 3>({sets, n, n});
  gemm<T>(device, Transpose::no, Transpose::yes, 1, y, work, 0, y_e);
  gemm<T>(device, Transpose::no, Transpose::no, 1, y_e, right, 0, work);
  gemm<T>(device, Transpose::yes, Transpose::no, 1, y, work, 0, y_e);
  launch(stream, edge_gradient<T>, dim3(elements.x, 2 * layers), block, 0, b.data, y_e.data, d,
         result.b_gradient.data);
}

CFAA_FOR_FLOAT_AND_DOUBLE(graph_wasserstein);

}  // namespace cfaa::cuda
