// SLIM on the GPU (equations and shapes: host/ops/slim.h). All sets go through each step together:
// products by one strided-batched GEMM, inverses by one batched Cholesky (kernels/cholesky.cuh),
// (BB' + delta I)^(-1/2) as kernels/slim_penalty.cu does; the kernels here are what lies between.
// At D = 300 everything a round touches (4 sets, 0.7 MB per matrix) stays in the L2 cache; the
// inverse square root takes nearly all of the time.
//
// Nothing waits for the host. The number of rounds is fixed; a set whose objective has converged
// keeps its Xi, so that every later round repeats its last one bit by bit.

#include <limits>

#include "cuda/blas.h"
#include "cuda/launch.h"
#include "cuda/nvtx.h"
#include "host/ops/slim.h"
#include "kernels/block.cuh"
#include "kernels/cholesky.cuh"
#include "kernels/latch.cuh"
#include "kernels/slim_penalty.cuh"
#include "kernels/widened_sets.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = kElementThreads;

// nu of each set, and no round made yet. A set of zeros has no scale of its own: it keeps nu as
// given, and B = 0 whatever nu is. One block per set.
// report: start_sets threads=256 bytes=8*S*D
__global__ void start_sets(const double* gram,  // (S, D, D)
                           int d, double nu, bool relative,
                           double* nu_out,    // (S)
                           int32_t* rounds,   // (S)
                           int32_t* stopped)  // (S)
{
  const int64_t s = blockIdx.x;
  double trace = 0;
  if (relative) {
    for (int64_t j = threadIdx.x; j < d; j += blockDim.x) trace += gram[(s * d + j) * d + j];
  }
  trace = block_sum(trace);
  if (threadIdx.x == 0) {
    nu_out[s] = trace > 0 ? nu * (trace / d) : nu;
    rounds[s] = 0;
    stopped[s] = 0;
  }
}

// out = Z'Z + nu Xi. A running set takes its next Xi (none yet: 2 I), a stopped one keeps its own.
// report: add_penalty threads=256 bytes=32*S*D*D flops=2*S*D*D fp64
__global__ void add_penalty(const double* gram,      // (S, D, D)
                            const double* nu,        // (S)
                            const double* next_xi,   // (S, D, D), or null in the first round
                            const int32_t* stopped,  // (S)
                            int d,
                            double* xi,   // (S, D, D), or null when one round is all
                            double* out)  // (S, D, D)
{
  const int64_t s = blockIdx.y;
  const int size = d * d;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const int64_t at = s * size + i;
  double value = i % (d + 1) == 0 ? 2.0 : 0.0;
  if (next_xi != nullptr) value = stopped[s] != 0 ? xi[at] : next_xi[at];
  if (xi != nullptr) xi[at] = value;
  out[at] = gram[at] + nu[s] * value;
}

// exact  gamma_j = (1 - nu (Theta Xi)_jj) / Theta_jj,  B = I - nu Theta Xi - Theta diag(gamma)
// paper  gamma_j = 1 / Theta_jj,                       B = I - Theta diag(gamma)
// Every thread works out its column's gamma again: two loads that its warp's neighbours share.
// report: mix threads=256 bytes=24*S*D*D flops=5*S*D*D fp64
__global__ void mix(const double* theta,     // (S, D, D)
                    const double* theta_xi,  // (S, D, D), or null: 2 Theta
                    const double* nu,        // (S)
                    SlimStep step, int d,
                    double* b,      // (S, D, D)
                    double* gamma)  // (S, D)
{
  const int64_t s = blockIdx.y;
  const int size = d * d;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const int row = i / d, column = i % d;
  const int64_t at = s * size + i, diagonal = s * size + column * (d + 1);
  const double weight = step == SlimStep::exact ? nu[s] : 0.0;
  const double tx_ij = theta_xi != nullptr ? theta_xi[at] : 2 * theta[at];
  const double tx_jj = theta_xi != nullptr ? theta_xi[diagonal] : 2 * theta[diagonal];
  const double g = (1 - weight * tx_jj) / theta[diagonal];
  b[at] = row == column ? 0.0 : -weight * tx_ij - theta[at] * g;
  if (row == column) gamma[s * d + column] = g;
}

// The rows' shares of |Z - ZB|^2 = Tr((I - B)' Z'Z (I - B)), with no further product and no
// cancellation against a large Z'Z: as Theta^-1 = Z'Z + nu Xi, Z'Z (I - B) is diag(gamma) + nu Xi B
// after the exact step and diag(gamma) - nu Xi (I - B) after the paper's, and diag(B) = 0. One
// block per row of a set.
// report: row_residual threads=256 bytes=24*S*D*D flops=4*S*D*D fp64
__global__ void row_residual(const double* xi,     // (S, D, D), or null: 2 I
                             const double* b,      // (S, D, D)
                             const double* bb,     // (S, D, D)  BB'
                             const double* gamma,  // (S, D)
                             const double* nu,     // (S)
                             SlimStep step, int d,
                             double* out)  // (S, D)
{
  const int64_t s = blockIdx.y;
  const int row = static_cast<int>(blockIdx.x);
  const int64_t start = (s * d + row) * d;
  double sum = 0;
  for (int j = static_cast<int>(threadIdx.x); j < d; j += static_cast<int>(blockDim.x)) {
    const double unit = j == row ? 1.0 : 0.0;
    const double weight = xi != nullptr ? xi[start + j] : 2 * unit;
    const double mixed = b[start + j], square = bb[start + j];
    sum += weight * (step == SlimStep::exact ? mixed - square : 2 * mixed - unit - square);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[s * d + row] = gamma[s * d + row] + nu[s] * sum;
}

// objective = 1/2 |Z - ZB|^2 + 2 nu Tr((BB' + delta I)^(1/2)), and whether it still falls. Without
// roots there is no objective, and `residual` only tells whether all is finite. One block per set.
// report: close_round threads=256 bytes=16*S*D flops=5*S*D fp64
__global__ void close_round(
    const double* residual,  // (S, D)
    const double* roots,     // (S, D)  sum to Tr((BB' + delta I)^(1/2)), or null
    const double* nu,        // (S)
    double tolerance, int d, int64_t round, int64_t iterations,
    double* objective,  // (S, iterations)
    int32_t* rounds,    // (S)
    int32_t* stopped,   // (S)
    Fault* latch) {
  const int64_t s = blockIdx.x;
  double sum = 0;
  for (int64_t j = threadIdx.x; j < d; j += blockDim.x) {
    sum += 0.5 * residual[s * d + j];
    if (roots != nullptr) sum += 2 * nu[s] * roots[s * d + j];
  }
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  double* history = objective + s * iterations;
  if (stopped[s] != 0) {
    history[round] = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  history[round] = roots != nullptr ? sum : std::numeric_limits<double>::quiet_NaN();
  rounds[s] = static_cast<int32_t>(round + 1);
  if (!(fabs(sum) <= std::numeric_limits<double>::max())) {
    latch_fault(latch, FaultCode::not_finite, FaultSite::slim, static_cast<int>(s), -1);
  }
  if (tolerance > 0 && round > 0 && history[round - 1] - sum < tolerance * history[round - 1]) {
    stopped[s] = 1;
  }
}

}  // namespace

template <class T>
void slim(Context& context, std::span<const MatrixView<const T>> sets, const SlimOptions& options,
          const Slim& result) {
  const Range range("SLIM");
  Device& device = device_of(context);
  Arena& arena = context.scratch();
  const cudaStream_t stream = device.stream();
  const int64_t s = result.b.shape[0], n = result.b.shape[1];
  const int d = static_cast<int>(n);
  const dim3 elements = elementwise(n * n, s), per_set(static_cast<unsigned>(s)), block(kThreads);
  const dim3 per_row(static_cast<unsigned>(n), static_cast<unsigned>(s));
  const auto gram = arena.take<double, 3>({s, n, n});
  const auto inverse_factor = arena.take<double, 3>({s, n, n});
  const auto product = arena.take<double, 3>({s, n, n});
  const auto next_xi = arena.take<double, 3>({s, n, n});
  const auto roots = arena.take<double, 2>({s, n});
  const auto residual = arena.take<double, 2>({s, n});
  const auto stopped = arena.take<int32_t, 1>({s});

  {  // Z'Z, chunk by chunk
    const Arena::Scope scope(arena);
    const auto buffer = arena.take<double, 3>({s, std::min(kChunkRows, most_rows(sets)), n});
    for (int64_t first = 0; first < most_rows(sets); first += kChunkRows) {
      const View<const double, 3> z = widened_rows(stream, sets, first, buffer);
      gemm<double>(device, Transpose::yes, Transpose::no, 1, z, z, first == 0 ? 0 : 1, gram);
    }
  }
  launch(stream, start_sets, per_set, block, 0, gram.data, d, options.nu,
         options.nu_scale == NuScale::relative, result.nu.data, result.rounds.data, stopped.data);

  const bool floats = options.solver == Solver::gemm && has_float_steps<T>(context);
  for (int64_t round = 0; round < options.iterations; ++round) {
    const bool first = round == 0, last = round + 1 == options.iterations;
    // Theta = (Z'Z + nu Xi)^-1
    launch(stream, add_penalty, elements, block, 0, gram.data, result.nu.data,
           first ? nullptr : next_xi.data, stopped.data, d, result.xi.data, product.data);
    inverse_cholesky<double>(context, options.solver, product, inverse_factor, FaultSite::slim);
    gemm<double>(device, Transpose::yes, Transpose::no, 1, inverse_factor, inverse_factor, 0,
                 result.theta);

    // B
    const bool mixes_xi = !first && options.step == SlimStep::exact;
    if (mixes_xi) {
      gemm<double>(device, Transpose::no, Transpose::no, 1, result.theta, result.xi, 0, product);
    }
    launch(stream, mix, elements, block, 0, result.theta.data, mixes_xi ? product.data : nullptr,
           result.nu.data, options.step, d, result.b.data, result.gamma.data);

    const auto close = [&](const double* misfit, const double* root_shares) {
      launch(stream, close_round, per_set, block, 0, misfit, root_shares, result.nu.data,
             options.tolerance, d, round, options.iterations, result.objective.data,
             result.rounds.data, stopped.data, context.fault_latch());
    };
    if (last && !options.last_objective) {
      close(result.gamma.data, nullptr);
      break;
    }

    // the objective, and Xi = 2 (BB' + delta I)^(-1/2) for the next round
    gemm<double>(device, Transpose::no, Transpose::yes, 1, result.b, result.b, 0, product);
    launch(stream, row_residual, per_row, block, 0, first ? nullptr : result.xi.data, result.b.data,
           product.data, result.gamma.data, result.nu.data, options.step, d, residual.data);
    slim_penalty(context, options, product, roots, last ? View<double, 3>() : next_xi, floats);
    close(residual.data, roots.data);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(slim);

}  // namespace cfaa::cuda
