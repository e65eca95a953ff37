#pragma once

// What both Sinkhorn kernels (sinkhorn_registers.cu, sinkhorn_shared.cu) share, and who launches
// them: coupling.cu.
//
//   G_ij = 2^((f_i + g_j - c_ij) beta),   plan_ij = u_i G_ij v_j,   beta = log2(e) / epsilon_q
//
// with f, g and c in units of cost. The first iteration is made in the log domain. Then G is kept
// and an iteration is two products with it:
//
//   u_i = 1 / (K sum_j G_ij v_j),   v_j = 1 / (K sum_i G_ij u_i)
//
// When a scaling would leave 2^-29 .. 2^29, what was scaled so far is absorbed in f and g, that
// half-step is made in the log domain, and G is made again. In exact arithmetic no exponent is then
// positive; they are cut at 0, since at a tiny epsilon the rounding of f + g - c is many epsilons.
// So every number is finite whatever epsilon is.
//
// The plan is made anew at the end, column by column as softmax_i((f_i - c_ij) beta) / K, with u in
// f: its columns sum to 1/K in every regime, as the last half-step demands.

#include "kernels/coupling.cuh"

namespace cfaa::cuda {

// The largest K whose G stays in registers: in double a tile of 128 would leave none for the rest.
template <class T>
constexpr int kMostInRegisters = sizeof(T) == 4 ? 128 : 64;

// Above this times the mean cost, epsilon makes the plan uniform to the last bit.
template <class T>
constexpr double kLargestEpsilon = sizeof(T) == 4 ? 1e12 : 1e24;

template <class T>
struct EntropicUnits {
  T beta, inverse_beta, share;  // share = 1/K
};

// Samples (K) of both sides are taken times 2^-exponent. Epsilon is in units of the mean cost,
//   mean(c) = var(x) + var(y) + (mean(x) - mean(y))^2, counted from the first sample.
template <class T>
__device__ EntropicUnits<T> entropic_units(const CouplingProblem<T>& problem, const T* source,
                                           const T* target, int exponent) {
  const int k = problem.k, threads = static_cast<int>(blockDim.x);
  const auto at = [=](T sample) { return double(T(std::ldexp(sample, -exponent))); };
  const double origin = at(source[0]);
  double x_sum = 0, y_sum = 0;
  for (int i = threadIdx.x; i < k; i += threads) {
    x_sum += at(source[i]) - origin;
    y_sum += at(target[i]) - origin;
  }
  const double x_mean = block_sum(x_sum) / k, y_mean = block_sum(y_sum) / k;
  double squares = 0;
  for (int i = threadIdx.x; i < k; i += threads) {
    const double x = at(source[i]) - origin - x_mean, y = at(target[i]) - origin - y_mean;
    squares += x * x + y * y;
  }
  const double mean_cost = block_sum(squares) / k + (x_mean - y_mean) * (x_mean - y_mean);
  const double wanted = 1.4426950408889634 / (min(problem.epsilon, kLargestEpsilon<T>) * mean_cost);
  return {T(min(wanted, double(std::numeric_limits<T>::max()))), T(1 / wanted), T(1.0 / k)};
}

// potential - c: the fused form, so that every use gives the same bits.
template <class T>
__device__ __forceinline__ T reduced(T potential, T a, T b) {
  return std::fma(-(a - b), a - b, potential);
}

template <class T>
__device__ __forceinline__ bool is_ordinary(T scaling) {
  return scaling >= T(0x1p-29) && scaling <= T(0x1p29);
}

// One block per problem, one launch for all of them.
template <class T>
void sinkhorn_in_registers(Context& context, const CouplingProblem<T>& problem, int64_t problems);
template <class T>
void sinkhorn_in_shared(Context& context, const CouplingProblem<T>& problem, int64_t problems);

}  // namespace cfaa::cuda
