// Couplings on the CPU: one task is one problem.
//
// Entropic. Costs are taken in units of their mean and exponents in powers of two, so that with
// beta = log2(e) / epsilon the kernel is
//
//   G_ij = 2^(f_i + g_j - beta c_ij),    plan_ij = u_i G_ij v_j.
//
// The first iteration runs in the log domain: f from row minima of the cost, then g from column
// maxima of f_i - beta c_ij, so that the largest entry of every column of G is 1, whatever epsilon.
// From then on a half-step changes no u_i or v_j by more than a factor K: the plan's columns sum to
// 1/K, a row can hold at most 1 and, since the preceding row update gave it 1/K and the column
// update divided by column sums of at most 1, at least 1/K^2. So the iterations are products with
// G, kept in the L2 cache, one pass over it each: a block of rows times v gives u, u times the same
// rows goes to the column sums.
//
// When some u_i or v_j leaves 2^-30 .. 2^30, f and g absorb them and G is made again. An entry of G
// that should be below 2^-120 is 2^-120; before the next absorption it stands for at most
// 2^(-120 + 30 + 30) = 2^-60 of the plan's mass.
//
// f + g - beta c cancels, so its error is the type's rounding times beta max(c). Float is used
// where that is below 1e-3 of an entry; other problems run in double. An epsilon so small that even
// double would not resolve the exponents is raised to where it does, 1e-13 of the largest cost.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "host/cpu/coupling.cpp"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>

#include "host/core/error.h"
#include "host/cpu/exp2-inl.h"
#include "host/cpu/problems.h"
#include "host/cpu/vector_dispatch.h"
#include "host/ops/coupling.h"
#include "hwy/highway.h"

#ifndef CFAA_HOST_CPU_COUPLING_ONCE
#define CFAA_HOST_CPU_COUPLING_ONCE
namespace cfaa::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 4;  // of the kernel that share a pass over v
constexpr int64_t kMostLanes = 16;  // of the vectors used; rows are padded to a multiple of it
constexpr double kLargestScaling = 1073741824.0;  // 2^30: u and v are absorbed beyond
constexpr double kFloatCosts = 1e4;               // largest c / epsilon that float resolves
constexpr double kDoubleCosts = 1e13;             // and double

int64_t padded_row(int64_t k) {
  return (k + kMostLanes - 1) / kMostLanes * kMostLanes;
}

// Memory of one worker for a problem solved in S, carved out of bytes that are enough for double.
template <class S>
struct SinkhornScratch {
  S* kernel;            // (K padded to kRowsAtOnce, kp)
  S *a, *b;             // (kp) source and target samples in units of the root of the mean cost
  S *f, *g;             // (kp) absorbed potentials
  S *u, *v;             // (kp) scalings
  S *next_u, *columns;  // (kp)

  SinkhornScratch(void* memory, int64_t k) {
    const int64_t kp = padded_row(k);
    S* next = static_cast<S*>(memory);
    for (S** vector : {&a, &b, &f, &g, &u, &v, &next_u, &columns}) {
      *vector = next;
      next += kp;
    }
    kernel = next;
  }
  static int64_t size(int64_t k) { return (8 + k + kRowsAtOnce) * padded_row(k); }
};

// One problem, in units in which the mean cost is 1 and the samples are about their common centre.
struct SinkhornProblem {
  void* memory;  // SinkhornScratch, with a and b filled
  int64_t k;
  double epsilon, tolerance;
  int64_t iterations;
};

struct SinkhornResult {
  double loss, marginal_error;  // in units of the mean cost
  int64_t iterations;
};

}  // namespace
}  // namespace cfaa::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cfaa::cpu::HWY_NAMESPACE {
namespace {

template <class D, class T>
HWY_INLINE hn::Vec<D> square_distance(D d, hn::Vec<D> a, const T* HWY_RESTRICT b) {
  const auto difference = hn::Sub(a, hn::Load(d, b));
  return hn::Mul(difference, difference);
}

// First half-step from potentials 0: f_i = beta min_j c_ij - log2(K sum_j 2^(beta (min_j c -
// c_ij))).
template <class S>
void first_source_potential(const SinkhornScratch<S>& s, int64_t k, S beta) {
  const hn::CappedTag<S, kMostLanes> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), kp = padded_row(k);
  const auto vbeta = hn::Set(d, beta);
  for (int64_t i = 0; i < k; ++i) {
    const auto a = hn::Set(d, s.a[i]);
    auto least = square_distance(d, a, s.b);
    for (int64_t j = lanes; j < kp; j += lanes) {
      least = hn::Min(least, square_distance(d, a, s.b + j));
    }
    const S nearest = hn::GetLane(hn::MinOfLanes(d, least));
    const auto top = hn::Set(d, beta * nearest);
    auto sum = hn::Zero(d);
    for (int64_t j = 0; j < kp; j += lanes) {
      const auto weight = exp2(d, hn::NegMulAdd(vbeta, square_distance(d, a, s.b + j), top));
      const int64_t left = std::clamp<int64_t>(k - j, 0, lanes);
      const auto is_sample = hn::FirstN(d, static_cast<std::size_t>(left));
      sum = hn::Add(sum, hn::IfThenElseZero(is_sample, weight));
    }
    s.f[i] = beta * nearest - std::log2(static_cast<S>(k) * hn::GetLane(hn::SumOfLanes(d, sum)));
  }
}

// Second half-step: g_j = -max_i (f_i - beta c_ij), which makes the kernel, and v_j = 1 / (K sum_i
// G_ij).
template <class S>
void first_target_potential(const SinkhornScratch<S>& s, int64_t k, S beta) {
  const hn::CappedTag<S, kMostLanes> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), kp = padded_row(k);
  const auto vbeta = hn::Set(d, beta);
  for (int64_t j = 0; j < kp; j += lanes) {
    const auto b = hn::Load(d, s.b + j);
    auto most = hn::Set(d, std::numeric_limits<S>::lowest());
    for (int64_t i = 0; i < k; ++i) {
      const auto difference = hn::Sub(b, hn::Set(d, s.a[i]));
      const auto cost = hn::Mul(difference, difference);
      most = hn::Max(most, hn::NegMulAdd(vbeta, cost, hn::Set(d, s.f[i])));
    }
    hn::Store(hn::Neg(most), d, s.g + j);
  }
}

// G from f and g; the padding of a row and the rows of padding are 0.
template <class S>
void make_kernel(const SinkhornScratch<S>& s, int64_t k, S beta) {
  const hn::CappedTag<S, kMostLanes> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), kp = padded_row(k);
  const auto vbeta = hn::Set(d, beta);
  for (int64_t i = 0; i < k; ++i) {
    const auto a = hn::Set(d, s.a[i]), f = hn::Set(d, s.f[i]);
    S* row = s.kernel + i * kp;
    for (int64_t j = 0; j < kp; j += lanes) {
      const auto potential = hn::Add(f, hn::Load(d, s.g + j));
      const auto exponent = hn::NegMulAdd(vbeta, square_distance(d, a, s.b + j), potential);
      hn::Store(exp2(d, exponent), d, row + j);
    }
    std::fill(row + k, row + kp, S(0));
  }
  std::fill(s.kernel + k * kp, s.kernel + (k + kRowsAtOnce) * kp, S(0));
}

// v_j = 1 / (K sum_i G_ij u_i) of the column sums.
template <class S>
void update_target(const SinkhornScratch<S>& s, int64_t k) {
  for (int64_t j = 0; j < k; ++j) s.v[j] = 1 / (static_cast<S>(k) * s.columns[j]);
}

// next_u_i = 1 / (K sum_j G_ij v_j) and columns_j = sum_i G_ij next_u_i, in one pass. Returns the
// L1 distance of the source marginal of u, v from 1/K.
template <class S>
double update_source(const SinkhornScratch<S>& s, int64_t k) {
  const hn::CappedTag<S, kMostLanes> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), kp = padded_row(k);
  const S count = static_cast<S>(k), share = 1 / count;
  std::fill_n(s.columns, kp, S(0));
  double error = 0;
  for (int64_t i = 0; i < k; i += kRowsAtOnce) {
    const S* HWY_RESTRICT rows = s.kernel + i * kp;
    auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    for (int64_t j = 0; j < kp; j += lanes) {
      const auto v = hn::Load(d, s.v + j);
      s0 = hn::MulAdd(hn::Load(d, rows + j), v, s0);
      s1 = hn::MulAdd(hn::Load(d, rows + kp + j), v, s1);
      s2 = hn::MulAdd(hn::Load(d, rows + 2 * kp + j), v, s2);
      s3 = hn::MulAdd(hn::Load(d, rows + 3 * kp + j), v, s3);
    }
    const S sums[kRowsAtOnce] = {
        hn::GetLane(hn::SumOfLanes(d, s0)), hn::GetLane(hn::SumOfLanes(d, s1)),
        hn::GetLane(hn::SumOfLanes(d, s2)), hn::GetLane(hn::SumOfLanes(d, s3))};
    for (int64_t r = 0; r < kRowsAtOnce; ++r) {
      const bool row = i + r < k;
      if (row) error += std::abs(static_cast<double>(s.u[i + r] * sums[r] - share));
      s.next_u[i + r] = row ? 1 / (count * sums[r]) : S(0);
    }
    const auto u0 = hn::Set(d, s.next_u[i]), u1 = hn::Set(d, s.next_u[i + 1]);
    const auto u2 = hn::Set(d, s.next_u[i + 2]), u3 = hn::Set(d, s.next_u[i + 3]);
    for (int64_t j = 0; j < kp; j += lanes) {
      auto c = hn::MulAdd(hn::Load(d, rows + j), u0, hn::Load(d, s.columns + j));
      c = hn::MulAdd(hn::Load(d, rows + kp + j), u1, c);
      c = hn::MulAdd(hn::Load(d, rows + 2 * kp + j), u2, c);
      hn::Store(hn::MulAdd(hn::Load(d, rows + 3 * kp + j), u3, c), d, s.columns + j);
    }
  }
  return error;
}

// Whether some scaling has left 1/kLargestScaling .. kLargestScaling.
template <class S>
bool outgrown(const S* scaling, int64_t k) {
  S least = scaling[0], most = scaling[0];
  for (int64_t i = 1; i < k; ++i) {
    least = std::min(least, scaling[i]);
    most = std::max(most, scaling[i]);
  }
  return !(least >= S(1 / kLargestScaling) && most <= S(kLargestScaling));
}

template <class S>
void absorb(const SinkhornScratch<S>& s, int64_t k) {
  for (int64_t i = 0; i < k; ++i) {
    s.f[i] += std::log2(s.u[i]);
    s.g[i] += std::log2(s.v[i]);
    s.u[i] = s.v[i] = 1;
  }
}

// Turns the kernel into the plan and sums loss, gradients (into f and g: sum_j plan_ij (a_i - b_j),
// and the like) and the marginals' error.
template <class S>
SinkhornResult finish(const SinkhornScratch<S>& s, int64_t k) {
  const hn::CappedTag<S, kMostLanes> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), kp = padded_row(k);
  const double share = 1 / static_cast<double>(k);
  SinkhornResult result = {};
  std::fill_n(s.g, kp, S(0));
  std::fill_n(s.columns, kp, S(0));
  for (int64_t i = 0; i < k; ++i) {
    S* row = s.kernel + i * kp;
    const auto a = hn::Set(d, s.a[i]), u = hn::Set(d, s.u[i]);
    auto loss = hn::Zero(d), moment = hn::Zero(d), mass = hn::Zero(d);
    for (int64_t j = 0; j < kp; j += lanes) {
      const auto plan = hn::Mul(hn::Mul(u, hn::Load(d, row + j)), hn::Load(d, s.v + j));
      const auto difference = hn::Sub(a, hn::Load(d, s.b + j));
      const auto moved = hn::Mul(plan, difference);
      loss = hn::MulAdd(moved, difference, loss);
      moment = hn::Add(moment, moved);
      mass = hn::Add(mass, plan);
      hn::Store(plan, d, row + j);
      hn::Store(hn::Sub(hn::Load(d, s.g + j), moved), d, s.g + j);
      hn::Store(hn::Add(hn::Load(d, s.columns + j), plan), d, s.columns + j);
    }
    s.f[i] = hn::GetLane(hn::SumOfLanes(d, moment));
    result.loss += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, loss)));
    const double row_mass = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, mass)));
    result.marginal_error += std::abs(row_mass - share);
  }
  for (int64_t j = 0; j < k; ++j) {
    result.marginal_error += std::abs(static_cast<double>(s.columns[j]) - share);
  }
  return result;
}

template <class S>
SinkhornResult solve(const SinkhornProblem& problem) {
  const int64_t k = problem.k, kp = padded_row(k);
  const SinkhornScratch<S> s(problem.memory, k);
  const S beta = static_cast<S>(kLog2E<double> / problem.epsilon);
  // Padding repeats the last sample, so that its exponents are as finite as any. It counts for
  // nothing: its weights are masked, its entries of the kernel and its scalings 0.
  std::fill(s.a + k, s.a + kp, s.a[k - 1]);
  std::fill(s.b + k, s.b + kp, s.b[k - 1]);
  std::fill_n(s.u, kp, S(0));
  std::fill_n(s.v, kp, S(0));

  first_source_potential(s, k, beta);
  first_target_potential(s, k, beta);
  make_kernel(s, k, beta);
  std::fill_n(s.u, k, S(1));
  std::fill_n(s.columns, kp, S(0));
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < k; ++j) s.columns[j] += s.kernel[i * kp + j];
  }
  update_target(s, k);

  int64_t used = 1;
  for (; used < problem.iterations; ++used) {
    if (outgrown(s.u, k) || outgrown(s.v, k)) {
      absorb(s, k);
      make_kernel(s, k, beta);
    }
    const double error = update_source(s, k);
    if (problem.tolerance > 0 && error <= problem.tolerance) break;
    std::copy_n(s.next_u, k, s.u);
    update_target(s, k);
  }

  SinkhornResult result = finish(s, k);
  result.iterations = used;
  return result;
}

}  // namespace
}  // namespace cfaa::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cfaa::cpu {
namespace {

// One problem's input and output.
template <class T>
struct Problem {
  const T *source, *target;              // (K)
  T* plan;                               // (K, K) or nullptr
  T *source_gradient, *target_gradient;  // (K)
  int64_t k;
  double loss_scale;  // 1, or 1/K^2
};

struct Report {
  double loss, marginal_error;
  int64_t iterations;
};

// Centre and root mean cost of all pairs: mean_ij (a_i - b_j)^2 = var(a) + var(b) + (mean
// difference)^2. In units of the largest difference, so that squares neither overflow nor vanish.
struct Units {
  double centre, root_mean_cost, largest_cost;  // the last in units of the mean cost
};

template <class T>
Units units_of(const Problem<T>& problem) {
  const int64_t k = problem.k;
  const double base = problem.source[0];
  double sum[2] = {}, low = 0, high = 0;
  for (int side = 0; side < 2; ++side) {
    const T* m = side == 0 ? problem.source : problem.target;
    for (int64_t i = 0; i < k; ++i) {
      const double offset = static_cast<double>(m[i]) - base;
      sum[side] += offset;
      low = std::min(low, offset);
      high = std::max(high, offset);
    }
  }
  const double range = high - low;
  const double mean[2] = {sum[0] / static_cast<double>(k), sum[1] / static_cast<double>(k)};
  if (!std::isfinite(sum[0]) || !std::isfinite(sum[1]) || !std::isfinite(range)) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan, nan};
  }
  if (range == 0) return {base, 0, 0};
  double cost = (mean[0] - mean[1]) / range * ((mean[0] - mean[1]) / range);
  for (int side = 0; side < 2; ++side) {
    const T* m = side == 0 ? problem.source : problem.target;
    double squares = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double u = (static_cast<double>(m[i]) - base - mean[side]) / range;
      squares += u * u;
    }
    cost += squares / static_cast<double>(k);
  }
  return {base + (mean[0] + mean[1]) / 2, range * std::sqrt(cost), 1 / cost};
}

template <class T, class S>
Report sinkhorn(const Problem<T>& problem, const CouplingOptions& options, const Units& units,
                void* memory) {
  const int64_t k = problem.k, kp = padded_row(k);
  const SinkhornScratch<S> s(memory, k);
  const double inverse = 1 / units.root_mean_cost;
  for (int64_t i = 0; i < k; ++i) {
    s.a[i] = static_cast<S>((static_cast<double>(problem.source[i]) - units.centre) * inverse);
    s.b[i] = static_cast<S>((static_cast<double>(problem.target[i]) - units.centre) * inverse);
  }
  const double epsilon = std::max(options.epsilon, units.largest_cost / kDoubleCosts);
  const SinkhornProblem scaled = {memory, k, epsilon, options.tolerance, options.iterations};
  const SinkhornResult solved = CFAA_VECTOR_DISPATCH(solve<S>)(scaled);

  const double factor = 2 * units.root_mean_cost * problem.loss_scale;
  for (int64_t i = 0; i < k; ++i) {
    problem.source_gradient[i] = static_cast<T>(factor * static_cast<double>(s.f[i]));
    problem.target_gradient[i] = static_cast<T>(factor * static_cast<double>(s.g[i]));
  }
  if (problem.plan != nullptr) {
    for (int64_t i = 0; i < k; ++i) {
      std::transform(s.kernel + i * kp, s.kernel + i * kp + k, problem.plan + i * k,
                     [](S entry) { return static_cast<T>(entry); });
    }
  }
  const double loss =
      solved.loss * problem.loss_scale * units.root_mean_cost * units.root_mean_cost;
  return {loss, solved.marginal_error, solved.iterations};
}

// All samples equal: every plan costs nothing, and the uniform one is the entropic optimum.
template <class T>
Report uniform(const Problem<T>& problem) {
  const int64_t k = problem.k;
  std::fill_n(problem.source_gradient, k, T(0));
  std::fill_n(problem.target_gradient, k, T(0));
  if (problem.plan != nullptr) {
    std::fill_n(problem.plan, k * k, static_cast<T>(1 / (static_cast<double>(k) * k)));
  }
  return {0, 0, 0};
}

// Pairs the samples by rank, equal ones in index order.
template <class T>
Report exact(const Problem<T>& problem, const Units& units, void* memory) {
  const int64_t k = problem.k;
  int64_t* source_rank = static_cast<int64_t*>(memory);
  int64_t* target_rank = source_rank + k;
  const auto sort_ranks = [k](const T* m, int64_t* rank) {
    std::iota(rank, rank + k, int64_t{0});
    std::sort(rank, rank + k,
              [m](int64_t a, int64_t b) { return m[a] < m[b] || (m[a] == m[b] && a < b); });
  };
  sort_ranks(problem.source, source_rank);
  sort_ranks(problem.target, target_rank);

  const double share = 1 / static_cast<double>(k), unit = units.root_mean_cost;
  const double inverse = unit > 0 ? 1 / unit : 0;
  const double factor = 2 * share * problem.loss_scale;
  if (problem.plan != nullptr) std::fill_n(problem.plan, k * k, T(0));
  double loss = 0;
  for (int64_t r = 0; r < k; ++r) {
    const int64_t i = source_rank[r], j = target_rank[r];
    const double difference =
        static_cast<double>(problem.source[i]) - static_cast<double>(problem.target[j]);
    loss += difference * inverse * (difference * inverse);
    problem.source_gradient[i] = static_cast<T>(factor * difference);
    problem.target_gradient[j] = static_cast<T>(-factor * difference);
    if (problem.plan != nullptr) problem.plan[i * k + j] = static_cast<T>(share);
  }
  return {loss * share * problem.loss_scale * unit * unit, 0, 0};
}

template <class T>
Report not_finite(const Problem<T>& problem) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  std::fill_n(problem.source_gradient, problem.k, nan);
  std::fill_n(problem.target_gradient, problem.k, nan);
  if (problem.plan != nullptr) std::fill_n(problem.plan, problem.k * problem.k, nan);
  return {static_cast<double>(nan), static_cast<double>(nan), 0};
}

template <class T>
Report solve_problem(const Problem<T>& problem, const CouplingOptions& options, void* memory) {
  const Units units = units_of(problem);
  if (!std::isfinite(units.root_mean_cost)) return not_finite(problem);
  if (options.solver == OtSolver::exact) return exact(problem, units, memory);
  if (units.root_mean_cost == 0) return uniform(problem);
  const bool float_resolves = units.largest_cost <= kFloatCosts * options.epsilon;
  if (std::is_same_v<T, float> && float_resolves) {
    return sinkhorn<T, float>(problem, options, units, memory);
  }
  return sinkhorn<T, double>(problem, options, units, memory);
}

}  // namespace

template <class T>
void coupling(Context& context, MatrixView<const T> source, MatrixView<const T> target,
              const CouplingOptions& options, View<T, 3> plan, const Coupling<T>& result) {
  const int64_t q = source.rows(), k = source.cols(), workers = context.threads().threads();
  const int64_t doubles =
      options.solver == OtSolver::exact ? 2 * k : SinkhornScratch<double>::size(k);
  const MatrixView<double> scratch = context.scratch().take<double, 2>({workers, doubles});
  const double loss_scale =
      options.scale == OtScale::paper ? 1 / (static_cast<double>(k) * static_cast<double>(k)) : 1;
  context.threads().parallel_for(q, 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t problem = begin; problem < end; ++problem) {
      const Report report = solve_problem<T>(
          {source.data + problem * k, target.data + problem * k,
           plan.data == nullptr ? nullptr : plan.data + problem * k * k,
           &result.gradient(0, problem, 0), &result.gradient(1, problem, 0), k, loss_scale},
          options, &scratch(worker, 0));
      result.loss(problem) = static_cast<T>(report.loss);
      result.marginal_error(problem) = static_cast<T>(report.marginal_error);
      result.iterations(problem) = static_cast<int32_t>(report.iterations);
      result.converged(problem) = report.marginal_error <= std::max(options.tolerance, 1e-3);
    }
  });

  for (int64_t problem = 0; problem < q; ++problem) {
    if (std::isfinite(result.loss(problem))) continue;
    latch_fault(context, fault_of(FaultCode::not_finite, FaultSite::coupling, problem, problem));
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(coupling);

}  // namespace cfaa::cpu
#endif  // HWY_ONCE
