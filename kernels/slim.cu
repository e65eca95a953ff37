// SLIM on the GPU (equations and shapes: host/ops/slim.h). All sets go through each step together:
// products by one strided-batched GEMM, inverses by one batched Cholesky, (BB' + delta I)^(-1/2) by
// one batched eigendecomposition; the kernels here are what lies between. At D = 300 everything a
// round touches (4 sets, 0.7 MB per matrix) stays in the L2 cache, so the kernels are written for
// few launches, not for coalesced transposes; the eigensolver takes nearly all of the time.
//
// Nothing waits for the host. The number of rounds is fixed; a set whose objective has converged
// keeps its Xi, so that every later round repeats its last one bit by bit.

#include <limits>

#include "cuda/blas.h"
#include "cuda/launch.h"
#include "cuda/solver.h"
#include "host/core/error.h"
#include "host/ops/embedding_pair.h"
#include "host/ops/slim.h"
#include "kernels/block.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxSets = 2 * kMaxPairs;
// Rows widened to double at a time: bounds the scratch whatever N is.
constexpr int64_t kChunkRows = 1024;

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

// Rows first .. first + chunk of each set in double; rows past a set's end are zero, so that sets of
// different N share one batched GEMM.
template <class T>
__global__ void widen(Sets<const T> sets, int64_t first, int64_t chunk, int d,
                      double* out)  // (S, chunk, D)
{
  const int64_t s = blockIdx.y;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= chunk * d) return;
  const int64_t row = first + i / d;
  const int column = i % d;
  out[s * chunk * d + i] =
      row < sets.rows[s] ? static_cast<double>(sets.data[s][row * sets.stride[s] + column]) : 0.0;
}

template <class T>
__global__ void add_rows(const double* values,  // (S, chunk, D)
                         int64_t first, int64_t chunk, int d, Sets<T> sets)
{
  const int64_t s = blockIdx.y;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= chunk * d) return;
  const int64_t row = first + i / d;
  if (row >= sets.rows[s]) return;
  T* to = sets.data[s] + row * sets.stride[s] + i % d;
  *to = static_cast<T>(*to + values[s * chunk * d + i]);
}

// nu of each set, and no round made yet. One block per set.
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
    nu_out[s] = relative ? nu * trace / d : nu;
    rounds[s] = 0;
    stopped[s] = 0;
  }
}

// out = Z'Z + nu Xi. A running set takes its next Xi (none yet: 2 I), a stopped one keeps its own.
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
// paper  B_ij = -Theta_ij / Theta_jj
// Every thread works out its column's gamma again: two loads that its warp's neighbours share.
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
  const double theta_jj = theta[diagonal];
  double g = 0, mixed = 0;
  if (step == SlimStep::exact) {
    const double tx_ij = theta_xi != nullptr ? theta_xi[at] : 2 * theta[at];
    const double tx_jj = theta_xi != nullptr ? theta_xi[diagonal] : 2 * theta_jj;
    g = (1 - nu[s] * tx_jj) / theta_jj;
    mixed = -nu[s] * tx_ij - theta[at] * g;
  } else {
    mixed = -theta[at] / theta_jj;
  }
  b[at] = row == column ? 0.0 : mixed;
  if (row == column) gamma[s * d + column] = g;
}

// The rows' shares of |Z - ZB|^2 = Tr((I - B)' Z'Z (I - B)). One block per row of a set.
__global__ void row_residual(const double* gram,    // (S, D, D)
                             const double* b,       // (S, D, D)
                             const double* gram_b,  // (S, D, D)  Z'Z B
                             int d,
                             double* out)  // (S, D)
{
  const int64_t s = blockIdx.y, row = blockIdx.x;
  const int64_t start = (s * d + row) * d;
  double sum = 0;
  for (int64_t j = threadIdx.x; j < d; j += blockDim.x) {
    const double unit = j == row ? 1.0 : 0.0;
    sum += (unit - b[start + j]) * (gram[start + j] - gram_b[start + j]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[s * d + row] = sum;
}

// objective = 1/2 |Z - ZB|^2 + 2 nu Tr((BB' + delta I)^(1/2)), and whether it still falls. One block
// per set.
__global__ void close_round(const double* residual,  // (S, D)
                            const double* values,    // (S, D)  eigenvalues of BB'
                            const double* nu,        // (S)
                            double delta, double tolerance, int d, int64_t round,
                            int64_t iterations,
                            double* objective,  // (S, iterations)
                            int32_t* rounds,    // (S)
                            int32_t* stopped)   // (S)
{
  const int64_t s = blockIdx.x;
  double sum = 0;
  for (int64_t j = threadIdx.x; j < d; j += blockDim.x) {
    const double value = fmax(values[s * d + j], 0.0) + delta;
    sum += 0.5 * residual[s * d + j] + 2 * nu[s] * sqrt(value);
  }
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  double* history = objective + s * iterations;
  if (stopped[s] != 0) {
    history[round] = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  history[round] = sum;
  rounds[s] = static_cast<int32_t>(round + 1);
  if (tolerance > 0 && round > 0 && history[round - 1] - sum <= tolerance * history[round - 1]) {
    stopped[s] = 1;
  }
}

// Row j, the eigenvector of BB' for values_j, times (4 / (values_j + delta))^(1/4): the rows' Gram
// matrix then is Xi = 2 (BB' + delta I)^(-1/2).
__global__ void weigh_eigenvectors(const double* values,  // (S, D)
                                   double delta, int d,
                                   double* vectors)  // (S, D, D)
{
  const int64_t s = blockIdx.y;
  const int size = d * d;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const double value = fmax(values[s * d + i / d], 0.0) + delta;
  vectors[s * size + i] *= sqrt(2 / sqrt(value));
}

// G without its diagonal, and g_j = -sum_i G_ij Theta_ij. One block per 32 columns, a warp
// for every eighth row.
constexpr int kColumns = 32, kRowsAtOnce = 8;
__global__ void column_products(const double* b_gradient,  // (S, D, D)
                                const double* theta,       // (S, D, D)
                                int d,
                                double* off_diagonal,  // (S, D, D)
                                double* g)             // (S, D)
{
  CFAA_SHARED(double, parts, kColumns * kRowsAtOnce);
  const int lane = lane_index(), warp = warp_index();
  const int64_t s = blockIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + lane;
  double sum = 0;
  if (column < d) {
    for (int64_t row = warp; row < d; row += kRowsAtOnce) {
      const int64_t at = (s * d + row) * d + column;
      const double value = row == column ? 0.0 : b_gradient[at];
      off_diagonal[at] = value;
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
  g[s * d + column] = total;
}

struct ThetaGradient {
  const double* gradient;     // (S, D, D)  G, diagonal zero
  const double* gradient_xi;  // (S, D, D)  G Xi, or null: 2 G
  const double* xi;           // (S, D, D), or null: 2 I
  const double* theta;        // (S, D, D)
  const double* gamma;        // (S, D)
  const double* nu;           // (S)
  const double* g;            // (S, D)

  template <class F>
  void for_each_pointer(F f) const {
    for (const double* pointer : {gradient, gradient_xi, xi, theta, gamma, nu, g}) f(pointer);
  }
};

// dTheta_ij of one set
__device__ double theta_gradient(const ThetaGradient& in, SlimStep step, int64_t s, int64_t i,
                                 int64_t j, int64_t d) {
  const int64_t at = (s * d + i) * d + j;
  const double theta_jj = in.theta[(s * d + j) * d + j];
  if (step == SlimStep::paper) {
    return i == j ? -in.g[s * d + j] / (theta_jj * theta_jj) : -in.gradient[at] / theta_jj;
  }
  const double gradient_xi = in.gradient_xi != nullptr ? in.gradient_xi[at] : 2 * in.gradient[at];
  const double xi = in.xi != nullptr ? in.xi[at] : (i == j ? 2.0 : 0.0);
  const double weight = in.g[s * d + i] / in.theta[(s * d + i) * d + i];
  double value = -in.nu[s] * (gradient_xi + weight * xi) - in.gradient[at] * in.gamma[s * d + j];
  if (i == j) value -= weight * in.gamma[s * d + j];
  return value;
}

// out = -scale (dTheta + dTheta'): dGram + dGram' = Theta out Theta / scale
__global__ void symmetric_theta_gradient(ThetaGradient in, SlimStep step, double scale, int d,
                                         double* out)  // (S, D, D)
{
  const int64_t s = blockIdx.y;
  const int size = d * d;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const int row = i / d, column = i % d;
  out[s * size + i] = -scale * (theta_gradient(in, step, s, row, column, d) +
                                theta_gradient(in, step, s, column, row, d));
}

dim3 elementwise(int64_t size, int64_t sets) {
  return dim3(static_cast<unsigned>((size + kThreads - 1) / kThreads), static_cast<unsigned>(sets));
}

template <class T>
int64_t longest(std::span<const MatrixView<const T>> sets) {
  int64_t rows = 0;
  for (const MatrixView<const T>& set : sets) rows = std::max(rows, set.rows());
  return rows;
}

// Rows first .. of every set, as (S, rows, D) in double.
template <class T>
View<const double, 3> widened_rows(Context& context, std::span<const MatrixView<const T>> sets,
                                   int64_t first, View<double, 3> buffer) {
  const int64_t s = buffer.shape[0], d = buffer.shape[2];
  const int64_t rows = std::min(buffer.shape[1], longest(sets) - first);
  launch(device_of(context).stream(), widen<T>, elementwise(rows * d, s), dim3(kThreads), 0,
         pack(sets), first, rows, static_cast<int>(d), buffer.data);
  return View<double, 3>(buffer.data, {s, rows, d});
}

}  // namespace

template <class T>
void slim(Context& context, std::span<const MatrixView<const T>> sets, const SlimOptions& options,
          const Slim& result) {
  Device& device = device_of(context);
  Arena& arena = context.scratch();
  const cudaStream_t stream = device.stream();
  const int64_t s = result.b.shape[0], n = result.b.shape[1];
  const int d = static_cast<int>(n);
  const dim3 elements = elementwise(n * n, s), per_set(static_cast<unsigned>(s)), block(kThreads);
  const auto gram = arena.take<double, 3>({s, n, n});
  const auto inverse_factor = arena.take<double, 3>({s, n, n});
  const auto product = arena.take<double, 3>({s, n, n});
  const auto next_xi = arena.take<double, 3>({s, n, n});
  const auto values = arena.take<double, 2>({s, n});
  const auto residual = arena.take<double, 2>({s, n});
  const auto stopped = arena.take<int32_t, 1>({s});

  {  // Z'Z, chunk by chunk
    const Arena::Scope scope(arena);
    const auto buffer = arena.take<double, 3>({s, std::min(kChunkRows, longest(sets)), n});
    for (int64_t first = 0; first < longest(sets); first += kChunkRows) {
      const View<const double, 3> z = widened_rows(context, sets, first, buffer);
      gemm<double>(device, Transpose::yes, Transpose::no, 1, z, z, first == 0 ? 0 : 1, gram);
    }
  }
  launch(stream, start_sets, per_set, block, 0, gram.data, d, options.nu,
         options.nu_scale == NuScale::relative, result.nu.data, result.rounds.data, stopped.data);

  for (int64_t round = 0; round < options.iterations; ++round) {
    const bool first = round == 0, last = round + 1 == options.iterations;
    // Theta = (Z'Z + nu Xi)^-1
    launch(stream, add_penalty, elements, block, 0, gram.data, result.nu.data,
           first ? nullptr : next_xi.data, stopped.data, d, result.xi.data, product.data);
    inverse_cholesky_factor<double>(context, product, inverse_factor, FaultSite::slim);
    gemm<double>(device, Transpose::yes, Transpose::no, 1, inverse_factor, inverse_factor, 0,
                 result.theta);
    // B
    if (!first) {
      gemm<double>(device, Transpose::no, Transpose::no, 1, result.theta, result.xi, 0, product);
    }
    launch(stream, mix, elements, block, 0, result.theta.data, first ? nullptr : product.data,
           result.nu.data, options.step, d, result.b.data, result.gamma.data);
    // the objective, and Xi = 2 (BB' + delta I)^(-1/2) for the next round
    gemm<double>(device, Transpose::no, Transpose::no, 1, gram, result.b, 0, product);
    launch(stream, row_residual, dim3(static_cast<unsigned>(n), static_cast<unsigned>(s)), block, 0,
           gram.data, result.b.data, product.data, d, residual.data);
    gemm<double>(device, Transpose::no, Transpose::yes, 1, result.b, result.b, 0, product);
    eigen_symmetric<double>(context, product, values, last ? Eigenvectors::no : Eigenvectors::yes,
                            FaultSite::slim_penalty);
    launch(stream, close_round, per_set, block, 0, residual.data, values.data, result.nu.data,
           options.delta, options.tolerance, d, round, options.iterations, result.objective.data,
           result.rounds.data, stopped.data);
    if (last) break;
    launch(stream, weigh_eigenvectors, elements, block, 0, values.data, options.delta, d,
           product.data);
    gemm<double>(device, Transpose::yes, Transpose::no, 1, product, product, 0, next_xi);
  }
}

template <class T>
void slim_backward(Context& context, std::span<const MatrixView<const T>> sets,
                   const SlimOptions& options, const Slim& forward,
                   View<const double, 3> b_gradient, double scale,
                   std::span<const MatrixView<T>> gradients) {
  Device& device = device_of(context);
  Arena& arena = context.scratch();
  const cudaStream_t stream = device.stream();
  const int64_t s = forward.b.shape[0], n = forward.b.shape[1];
  const int d = static_cast<int>(n);
  const auto gradient = arena.take<double, 3>({s, n, n});
  const auto product = arena.take<double, 3>({s, n, n});
  const auto symmetric = arena.take<double, 3>({s, n, n});
  const auto g = arena.take<double, 2>({s, n});
  const bool has_xi = forward.xi.data != nullptr;

  // dTheta + dTheta'
  launch(stream, column_products,
         dim3(static_cast<unsigned>((n + kColumns - 1) / kColumns), static_cast<unsigned>(s)),
         dim3(kColumns * kRowsAtOnce), 0, b_gradient.data, forward.theta.data, d, gradient.data,
         g.data);
  if (has_xi && options.step == SlimStep::exact) {
    gemm<double>(device, Transpose::no, Transpose::no, 1, gradient, forward.xi, 0, product);
  }
  const ThetaGradient in{gradient.data,      has_xi ? product.data : nullptr,
                         forward.xi.data,    forward.theta.data,
                         forward.gamma.data, forward.nu.data,
                         g.data};
  launch(stream, symmetric_theta_gradient, elementwise(n * n, s), dim3(kThreads), 0, in,
         options.step, scale, d, symmetric.data);

  // dGram + dGram' = -Theta (dTheta + dTheta') Theta
  gemm<double>(device, Transpose::no, Transpose::no, 1, forward.theta, symmetric, 0, product);
  gemm<double>(device, Transpose::no, Transpose::no, 1, product, forward.theta, 0, symmetric);

  // dZ += Z (dGram + dGram'), chunk by chunk
  const int64_t chunk = std::min(kChunkRows, longest(sets));
  const auto buffer = arena.take<double, 3>({s, chunk, n});
  const auto out = arena.take<double, 3>({s, chunk, n});
  for (int64_t first = 0; first < longest(sets); first += kChunkRows) {
    const View<const double, 3> z = widened_rows(context, sets, first, buffer);
    const int64_t rows = z.shape[1];
    gemm<double>(device, Transpose::no, Transpose::no, 1, z, symmetric, 0,
                 View<double, 3>(out.data, z.shape));
    launch(stream, add_rows<T>, elementwise(rows * n, s), dim3(kThreads), 0, out.data, first, rows,
           d, pack(gradients));
  }
}

#define CFAA_INSTANTIATE(T)                                                                      \
  template void slim<T>(Context&, std::span<const MatrixView<const T>>, const SlimOptions&,      \
                        const Slim&);                                                            \
  template void slim_backward<T>(Context&, std::span<const MatrixView<const T>>,                 \
                                 const SlimOptions&, const Slim&, View<const double, 3>, double, \
                                 std::span<const MatrixView<T>>);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa::cuda
