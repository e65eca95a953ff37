#pragma once

// What the kernels of couplings (sinkhorn.cuh, coupling_exact.cu) share: the problems, the unit
// their samples are taken in, and the report.

#include <cmath>
#include <limits>

#include "cuda/device.h"
#include "host/ops/coupling.h"
#include "kernels/block.cuh"
#include "kernels/latch.cuh"

namespace cfaa::cuda {

// Q problems of K source and K target samples. Block q solves problem q.
template <class T>
struct CouplingProblem {
  const T* source;                       // (Q, K)
  const T* target;                       // (Q, K)
  T* plan;                               // (Q, K, K), or nullptr
  T *source_gradient, *target_gradient;  // (Q, K)
  T *loss, *marginal_error;              // (Q)
  int32_t *iterations, *converged;       // (Q)
  Fault* latch;
  int k, most_iterations;
  double epsilon, tolerance;
  double loss_scale;  // 1, or 1/K^2
};

// Samples are multiplied by a power of two, which changes no bit of their differences, so that the
// largest difference is between 1 and 4 and squares neither overflow nor vanish.
enum class SampleRange { ordinary, zero, not_finite };
struct SampleUnit {
  SampleRange range;
  int exponent;  // samples are taken times 2^-exponent
};

template <class T>
__device__ SampleUnit sample_unit(const T* source, const T* target, int k) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  T low = source[0], high = low;
  int finite = 1;
  for (int i = thread; i < k; i += threads) {
    const T a = source[i], b = target[i];
    low = min(low, min(a, b));
    high = max(high, max(a, b));
    finite = finite && std::isfinite(a) && std::isfinite(b);
  }
  low = block_min(low);
  high = block_max(high);
  if (!__syncthreads_and(finite)) return {SampleRange::not_finite, 0};
  if (low == high) return {SampleRange::zero, 0};
  return {SampleRange::ordinary, std::ilogb(high / 2 - low / 2)};
}

// Ends problem q. `loss` is <plan, C> in the unit's square. Called by one thread.
template <class T>
__device__ void report(const CouplingProblem<T>& problem, int q, const SampleUnit& unit,
                       double loss, double error, int iterations) {
  const T value = static_cast<T>(std::ldexp(loss * problem.loss_scale, 2 * unit.exponent));
  problem.loss[q] = value;
  problem.marginal_error[q] = static_cast<T>(error);
  problem.iterations[q] = iterations;
  problem.converged[q] = error <= max(problem.tolerance, 1e-3);
  if (!std::isfinite(value)) {
    latch_fault(problem.latch, FaultCode::not_finite, FaultSite::coupling, q, q);
  }
}

// Problems without an ordinary range: samples that are all equal (every plan costs nothing, and the
// uniform one is the entropic optimum), and samples that are not finite.
template <class T>
__device__ void report_without_range(const CouplingProblem<T>& problem, int q,
                                     const SampleUnit& unit) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int64_t k = problem.k;
  const bool finite = unit.range == SampleRange::zero;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (int64_t i = thread; i < k; i += threads) {
    problem.source_gradient[q * k + i] = finite ? T(0) : nan;
    problem.target_gradient[q * k + i] = finite ? T(0) : nan;
  }
  if (problem.plan != nullptr) {
    const T share = static_cast<T>(1 / (static_cast<double>(k) * static_cast<double>(k)));
    for (int64_t i = thread; i < k * k; i += threads) {
      problem.plan[q * k * k + i] = finite ? share : nan;
    }
  }
  const double value = finite ? 0.0 : static_cast<double>(nan);
  if (thread == 0) report(problem, q, unit, value, value, 0);
}

// Launched by coupling() for OtSolver::exact; kernels/coupling_exact.cu.
template <class T>
void sorted_coupling(Context& context, const CouplingProblem<T>& problem, int64_t problems);

}  // namespace cfaa::cuda
