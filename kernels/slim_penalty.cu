// SLIM's penalty (contract: kernels/slim_penalty.cuh), in one of two ways.
//
// Solver::cusolver: A = V diag(values) V', and xi is the Gram matrix of the weighed eigenvectors.
//
// Solver::gemm: A = C C' by Cholesky, C' = U H by products. H^2 = C C' = A, so that
//
//   A^(1/2) = U'C',   Tr A^(1/2) = sum_ij U_ij C'_ij,   A^(-1/2) = C^-T U
//
// and the iteration sees the square root of A's condition, whose lower end is known: A >= delta I.
// Iterations on A itself see all of it and lose twice the digits. 9 steps reach a condition of A of
// 1.6e7: BB' up to 1,600 at the default delta.

#include "kernels/slim_penalty.cuh"

#include <type_traits>

#include "cuda/blas.h"
#include "cuda/launch.h"
#include "cuda/solver.h"
#include "host/core/log.h"
#include "kernels/block.cuh"
#include "kernels/cholesky.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/polar.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = kElementThreads;
constexpr std::size_t kPolarSteps = 9;

// Eigenvalues of BB' to those of A^(1/2). Rounding may leave one just below zero.
// report: take_roots threads=256 bytes=16*S*D flops=2*S*D fp64
__global__ void __launch_bounds__(kThreads) take_roots(double delta, int size,
                                                       double* values)  // (S, D)
{
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) values[i] = sqrt(fmax(values[i], 0.0) + delta);
}

// Row j, the eigenvector of A^(1/2) for roots_j, times (2 / roots_j)^(1/2): the rows' Gram matrix
// then is 2 A^(-1/2).
// report: weigh_eigenvectors threads=256 bytes=16*S*D*D flops=4*S*D*D fp64
__global__ void __launch_bounds__(kThreads) weigh_eigenvectors(const double* roots,  // (S, D)
                                                               int d,
                                                               double* vectors)  // (S, D, D)
{
  const Element e = element_of_thread(d);
  if (e.row >= d) return;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * d + e.row;
  vectors[row * d + e.column] *= sqrt(2 / roots[row]);
}

// A = BB' + delta I, and the least singular value that its factor may have.
// report: add_delta threads=256 bytes=16*S*D
__global__ void __launch_bounds__(kThreads) add_delta(double delta, int d,
                                                      double* a,      // (S, D, D)
                                                      double* least)  // (S)
{
  const int64_t s = blockIdx.y;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < d) a[(s * d + i) * d + i] += delta;
  if (i == 0) least[s] = sqrt(delta);
}

// The rows' shares of sum_ij U_ij C'_ij. One block per row of a set.
// report: row_products threads=256 bytes=16*S*D*D flops=2*S*D*D fp64
__global__ void __launch_bounds__(kThreads) row_products(const double* u,      // (S, D, D)
                                                         const double* upper,  // (S, D, D)
                                                         int d,
                                                         double* out)  // (S, D)
{
  const int64_t row = static_cast<int64_t>(blockIdx.y) * d + blockIdx.x;
  double sum = 0;
  for (int j = static_cast<int>(threadIdx.x); j < d; j += kThreads) {
    sum += u[row * d + j] * upper[row * d + j];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[row] = sum;
}

// Rounding leaves the product a little unsymmetric: 2 A^(-1/2) is the sum with its transpose.
// report: add_transpose threads=256 bytes=16*S*D*D flops=S*D*D fp64
__global__ void __launch_bounds__(kThreads) add_transpose(const double* from,  // (S, D, D)
                                                          int d,
                                                          double* to)  // (S, D, D)
{
  const Element e = element_of_thread(d);
  if (e.row >= d) return;
  const int64_t set = static_cast<int64_t>(blockIdx.y) * d * d;
  to[set + e.row * d + e.column] =
      from[set + e.row * d + e.column] + from[set + e.column * d + e.row];
}

void by_eigenvectors(Context& context, const SlimOptions& options, View<double, 3> bb,
                     MatrixView<double> roots, View<double, 3> xi) {
  Device& device = device_of(context);
  const cudaStream_t stream = device.stream();
  const int64_t s = bb.shape[0], n = bb.shape[1];
  const int d = static_cast<int>(n);
  const bool wanted = xi.data != nullptr;
  eigen_symmetric<double>(context, bb, roots, wanted ? Eigenvectors::yes : Eigenvectors::no,
                          FaultSite::slim_penalty);
  launch(stream, take_roots, elements_grid(s * n), dim3(kThreads), 0, options.delta,
         static_cast<int>(s * n), roots.data);
  if (!wanted) return;
  launch(stream, weigh_eigenvectors, dim3(elements_grid(n * n).x, static_cast<unsigned>(s)),
         dim3(kThreads), 0, roots.data, d, bb.data);
  gemm<double>(device, Transpose::yes, Transpose::no, 1, bb, bb, 0, xi);
}

void by_products(Context& context, const SlimOptions& options, View<double, 3> bb,
                 MatrixView<double> roots, View<double, 3> xi, Steps steps) {
  Device& device = device_of(context);
  const cudaStream_t stream = device.stream();
  const int64_t s = bb.shape[0], n = bb.shape[1];
  const int d = static_cast<int>(n);
  const unsigned sets = static_cast<unsigned>(s);
  const Arena::Scope scope(context.scratch());
  const auto inverse_factor = context.scratch().take<double, 3>({s, n, n});
  const auto u = context.scratch().take<double, 3>({s, n, n});
  const auto least = context.scratch().take<double, 1>({s});

  launch(stream, add_delta, dim3(elements_grid(n).x, sets), dim3(kThreads), 0, options.delta, d,
         bb.data, least.data);
  blocked_cholesky<double>(context, bb, inverse_factor, FaultSite::slim_penalty);
  device.copy(u.data, bb.data, static_cast<std::size_t>(bb.size()) * sizeof(double));
  polar_factor(context, u, least.data, kPolarSteps, FaultSite::slim_penalty, steps);
  launch(stream, row_products, dim3(static_cast<unsigned>(n), sets), dim3(kThreads), 0, u.data,
         bb.data, d, roots.data);
  if (xi.data == nullptr) return;
  gemm<double>(device, Transpose::yes, Transpose::no, 1, inverse_factor, u, 0, bb);
  launch(stream, add_transpose, dim3(elements_grid(n * n).x, sets), dim3(kThreads), 0, bb.data, d,
         xi.data);
}

}  // namespace

template <class T>
bool has_float_steps(Context& context) {
  if (std::is_same_v<T, double> || !device_of(context).has_slow_double()) return false;
  log_once(
      "double is slow on this GPU: the products behind SLIM's penalty are in float, with a "
      "correction in double");
  return true;
}
template bool has_float_steps<float>(Context&);
template bool has_float_steps<double>(Context&);

void slim_penalty(Context& context, const SlimOptions& options, View<double, 3> bb,
                  MatrixView<double> roots, View<double, 3> xi, bool float_steps) {
  if (options.solver == Solver::gemm) {
    by_products(context, options, bb, roots, xi, float_steps ? Steps::in_float : Steps::in_double);
  } else {
    by_eigenvectors(context, options, bb, roots, xi);
  }
}

}  // namespace cfaa::cuda
