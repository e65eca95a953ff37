// Entropic couplings on the GPU (host/ops/coupling.h has the contract). One block per problem, one
// launch for all of them.
//
//   G_ij = 2^((f_i + g_j - c_ij) beta),   plan_ij = u_i G_ij v_j,   beta = log2(e) / epsilon_q
//
// with f, g and c in units of cost. The first iteration is made in the log domain. Then G stands in
// shared memory and an iteration is two products with it:
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
//
// G needs 4 K^2 bytes in float: 66 KiB at K = 128, two blocks to an SM of sm_80. Its rows have an
// odd stride, so that walking along rows and along columns are both free of bank conflicts. Where G
// does not fit it is not stored: every use costs an exponential, and no memory.

#include "cuda/launch.h"
#include "cuda/nvtx.h"
#include "host/core/error.h"
#include "host/core/instantiate.h"
#include "kernels/all_pairs.cuh"
#include "kernels/coupling.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kVectors = 7;  // x, y, f, g, u, v, next

// Above this times the mean cost, epsilon makes the plan uniform to the last bit.
template <class T>
constexpr double kLargestEpsilon = sizeof(T) == 4 ? 1e12 : 1e24;

// One side of the problem as the half-steps see it: the source's rows or the target's.
template <class T, class Vector>
struct Side {
  Vector samples, potential, scaling;
  int stride;  // between its elements in G
};

template <class T>
struct Sample {
  T at, potential, scaling;
  int offset;  // in G
};

template <class T, class Vector, bool stored>
struct Sinkhorn {
  int k;
  T beta, inverse_beta, share;  // share = 1/K
  Partials<T> partials;
  Shared<T> kernel;  // (K, K | 1) where it is stored

  using S = Side<T, Vector>;

  __device__ static Sample<T> load(const S& side, int i) {
    return {side.samples[i], side.potential[i], side.scaling[i], i * side.stride};
  }

  // potential - c: the fused form, so that every use gives the same bits.
  __device__ static T reduced(T potential, T a, T b) {
    return std::fma(-(a - b), a - b, potential);
  }

  __device__ T entry(const Sample<T>& a, const Sample<T>& b) const {
    if constexpr (stored) {
      return kernel[a.offset + b.offset];
    } else {
      return make_entry(a, b);
    }
  }
  __device__ T make_entry(const Sample<T>& a, const Sample<T>& b) const {
    return std::exp2(min(beta * reduced(a.potential + b.potential, a.at, b.at), T(0)));
  }

  // finish(i, most, sum): most_i = max_j (g_j - c_ij), sum_i = sum_j 2^(beta (g_j - c_ij - most_i))
  template <class Finish>
  __device__ void log_sums(const S& rows, const S& columns, Finish finish) const {
    const T b = beta;
    reduce_rows<T>(
        k, k, partials, Two<T>{-std::numeric_limits<T>::infinity(), 0},
        [=](int i) -> T { return rows.samples[i]; },
        [=](int j) -> Two<T> {
          return {columns.samples[j], columns.potential[j]};
        },
        [b](Two<T>& sum, T x, const Two<T>& column) {
          const T value = reduced(column.b, x, column.a), most = max(sum.a, value);
          sum.b = sum.b * std::exp2(b * (sum.a - most)) + std::exp2(b * (value - most));
          sum.a = most;
        },
        [b](Two<T>& sum, const Two<T>& other) {
          if (other.b == 0) return;  // a segment without columns
          const T most = max(sum.a, other.a);
          sum.b = sum.b * std::exp2(b * (sum.a - most)) + other.b * std::exp2(b * (other.a - most));
          sum.a = most;
        },
        [=](int i, const Two<T>& sum) { finish(i, sum.a, sum.b); });
  }

  // f_i = -most_i - log2(K sum_i) / beta, u_i = 1
  __device__ void log_half_step(const S& rows, const S& columns) const {
    const T count = static_cast<T>(k), unit = inverse_beta;
    log_sums(rows, columns, [=](int i, T most, T sum) {
      rows.potential[i] = -most - unit * std::log2(count * sum);
      rows.scaling[i] = 1;
    });
  }

  __device__ void absorb(const S& side) const {
    for (int i = threadIdx.x; i < k; i += kPairThreads) {
      side.potential[i] += inverse_beta * std::log2(T(side.scaling[i]));
      side.scaling[i] = 1;
    }
    __syncthreads();
  }

  __device__ void make_kernel(const S& source, const S& target) const {
    if constexpr (stored) {
      for (int at = threadIdx.x; at < k * k; at += kPairThreads) {
        const Sample<T> a = load(source, at / k), b = load(target, at % k);
        kernel[a.offset + b.offset] = make_entry(a, b);
      }
      __syncthreads();
    }
  }

  // next_i = 1 / (K sum_j G_ij v_j). Returns whether all of them are ordinary numbers; `error` is
  // the L1 distance of the rows' marginal from 1/K before the step, of this thread's rows.
  __device__ bool half_step(const S& rows, const S& columns, const Vector& next, T& error) const {
    bool ordinary = true;
    error = 0;
    sum_rows<T>(
        k, k, partials, [=](int i) -> Sample<T> { return load(rows, i); },
        [=](int j) -> Sample<T> { return load(columns, j); },
        [this](Two<T>& sum, const Sample<T>& row, const Sample<T>& column) {
          sum.a = std::fma(entry(row, column), column.scaling, sum.a);
        },
        [&](int i, const Two<T>& sum) {
          const T value = share / sum.a;
          error += std::abs(T(rows.scaling[i]) * sum.a - share);
          next[i] = value;
          ordinary = ordinary && value >= T(0x1p-29) && value <= T(0x1p29);
        });
    return __syncthreads_and(ordinary);
  }
};

// report: sinkhorn_kernel<T,Shared<T>,true> threads=256 shared=(2048+7*K+K*(K|1))*T bytes=4*Q*K*T
//   flops=4*J*Q*K*K exps=8*Q*K*K
// report: sinkhorn_kernel<T,Shared<T>,false> threads=256 shared=(2048+7*K)*T bytes=4*Q*K*T
//   flops=10*J*Q*K*K exps=2*J*Q*K*K
// report: sinkhorn_kernel<T,T*,false> threads=256 shared=2048*T bytes=4*Q*K*T flops=10*J*Q*K*K
//   exps=2*J*Q*K*K
template <class T, class Vector, bool stored>
__global__ void __launch_bounds__(kPairThreads, sizeof(T) == 4 ? 2 : 1)
    sinkhorn_kernel(const CouplingProblem<T> problem, T* scratch) {
  const int q = blockIdx.x, k = problem.k, thread = threadIdx.x;
  const T* source_samples = problem.source + int64_t{q} * k;
  const T* target_samples = problem.target + int64_t{q} * k;
  const SampleUnit unit = sample_unit(source_samples, target_samples, k);
  if (unit.range != SampleRange::ordinary) {
    report_without_range(problem, q, unit);
    return;
  }

  SharedArena arena;
  T* memory = std::is_pointer_v<Vector> ? scratch + int64_t{q} * kVectors * k : nullptr;
  Sinkhorn<T, Vector, stored> solver;
  solver.k = k;
  solver.partials = take_partials<T>(arena);
  const auto take = [&] { return take_vector<Vector>(arena, memory, k); };
  const int stride = k | 1;
  Side<T, Vector> source{take(), take(), take(), stride};
  Side<T, Vector> target{take(), take(), take(), 1};
  Vector next = take();
  if constexpr (stored) solver.kernel = arena.take<T>(int64_t{k} * stride);

  // mean(c) = var(x) + var(y) + (mean(x) - mean(y))^2, counted from the first sample.
  const T origin = std::ldexp(source_samples[0], -unit.exponent);
  double x_sum = 0, y_sum = 0;
  for (int i = thread; i < k; i += kPairThreads) {
    const T x = std::ldexp(source_samples[i], -unit.exponent);
    const T y = std::ldexp(target_samples[i], -unit.exponent);
    source.samples[i] = x;
    target.samples[i] = y;
    target.potential[i] = 0;
    x_sum += double(x) - double(origin);
    y_sum += double(y) - double(origin);
  }
  const double x_mean = block_sum(x_sum) / k, y_mean = block_sum(y_sum) / k;
  double squares = 0;
  for (int i = thread; i < k; i += kPairThreads) {
    const double x = double(T(source.samples[i])) - double(origin) - x_mean;
    const double y = double(T(target.samples[i])) - double(origin) - y_mean;
    squares += x * x + y * y;
  }
  const double mean_cost = block_sum(squares) / k + (x_mean - y_mean) * (x_mean - y_mean);
  const double beta = 1.4426950408889634 / (min(problem.epsilon, kLargestEpsilon<T>) * mean_cost);
  solver.beta = T(min(beta, double(std::numeric_limits<T>::max())));
  solver.inverse_beta = T(1 / beta);
  solver.share = T(1.0 / k);

  solver.log_half_step(source, target);
  solver.log_half_step(target, source);
  solver.make_kernel(source, target);
  int used = 1;
  for (; used < problem.most_iterations; ++used) {
    T error;
    const bool ordinary = solver.half_step(source, target, next, error);
    if (problem.tolerance > 0 && block_sum(double(error)) <= problem.tolerance) break;
    if (!ordinary) {
      solver.absorb(target);
      solver.log_half_step(source, target);
      solver.log_half_step(target, source);
      solver.make_kernel(source, target);
      continue;
    }
    const Vector previous = source.scaling;
    source.scaling = next;
    next = previous;
    if (!solver.half_step(target, source, target.scaling, error)) {
      solver.absorb(source);
      solver.log_half_step(target, source);
      solver.make_kernel(source, target);
    }
  }

  // The plan: G's place now holds it, target.potential the columns' maxima, target.scaling their
  // factors.
  solver.absorb(source);
  solver.log_sums(target, source, [&](int j, T most, T sum) {
    target.potential[j] = most;
    target.scaling[j] = solver.share / sum;
  });
  const auto make_plan = [=](const Sample<T>& x, const Sample<T>& y) -> T {
    const T value = Sinkhorn<T, Vector, stored>::reduced(x.potential, x.at, y.at);
    return std::exp2(solver.beta * (value - y.potential)) * y.scaling;
  };
  const int64_t entries = int64_t{k} * k;
  for (int64_t at = thread; at < entries; at += kPairThreads) {
    if (!stored && problem.plan == nullptr) break;
    const Sample<T> x = solver.load(source, int(at / k)), y = solver.load(target, int(at % k));
    const T value = make_plan(x, y);
    if constexpr (stored) solver.kernel[x.offset + y.offset] = value;
    if (problem.plan != nullptr) problem.plan[q * entries + at] = value;
  }
  __syncthreads();

  const auto plan = [=](const Sample<T>& x, const Sample<T>& y) -> T {
    if constexpr (stored) return solver.kernel[x.offset + y.offset];
    return make_plan(x, y);
  };
  const auto load_source = [=](int i) -> Sample<T> { return solver.load(source, i); };
  const auto load_target = [=](int j) -> Sample<T> { return solver.load(target, j); };
  const double factor = 2 * problem.loss_scale;
  double loss = 0, error = 0;
  T* source_gradient = problem.source_gradient + int64_t{q} * k;
  T* target_gradient = problem.target_gradient + int64_t{q} * k;
  sum_rows<T>(
      k, k, solver.partials, load_source, load_target,
      [=](Two<T>& sum, const Sample<T>& x, const Sample<T>& y) {
        const T mass = plan(x, y);
        sum.a += mass;
        sum.b = std::fma(mass, x.at - y.at, sum.b);
      },
      [&](int i, const Two<T>& sum) {
        source_gradient[i] = T(std::ldexp(factor * double(sum.b), unit.exponent));
        error += std::abs(double(sum.a) - 1.0 / k);
      });
  sum_rows<T>(
      k, k, solver.partials, load_target, load_source,
      [=](Two<T>& sum, const Sample<T>& y, const Sample<T>& x) {
        const T mass = plan(x, y);
        sum.a += mass;
        sum.b = std::fma(mass, y.at - x.at, sum.b);
      },
      [&](int j, const Two<T>& sum) {
        target_gradient[j] = T(std::ldexp(factor * double(sum.b), unit.exponent));
        error += std::abs(double(sum.a) - 1.0 / k);
      });
  sum_rows<T>(
      k, k, solver.partials, load_source, load_target,
      [=](Two<T>& sum, const Sample<T>& x, const Sample<T>& y) {
        const T difference = x.at - y.at;
        sum.a = std::fma(plan(x, y) * difference, difference, sum.a);
      },
      [&](int, const Two<T>& sum) { loss += double(sum.a); });
  loss = block_sum(loss);
  error = block_sum(error);
  if (thread == 0) report(problem, q, unit, loss, error, used);
}

template <class T>
void sinkhorn(Context& context, const CouplingProblem<T>& problem, int64_t problems) {
  const Range range("entropic couplings");
  Device& device = device_of(context);
  const int64_t k = problem.k;
  const dim3 grid(static_cast<unsigned>(problems)), block(kPairThreads);
  const std::size_t least = partials_bytes<T>();
  const std::size_t vectors = least + kVectors * shared_bytes<T>(k);
  const std::size_t kernel = vectors + shared_bytes<T>(k * (k | 1));
  T* const none = nullptr;
  if (kernel <= device.shared_limit()) {
    launch(device.stream(), sinkhorn_kernel<T, Shared<T>, true>, grid, block, kernel, problem,
           none);
  } else if (vectors <= device.shared_limit()) {
    launch(device.stream(), sinkhorn_kernel<T, Shared<T>, false>, grid, block, vectors, problem,
           none);
  } else {
    T* scratch = context.scratch().template take<T, 3>({problems, kVectors, k}).data;
    launch(device.stream(), sinkhorn_kernel<T, T*, false>, grid, block, least, problem, scratch);
  }
}

}  // namespace

template <class T>
void coupling(Context& context, MatrixView<const T> source, MatrixView<const T> target,
              const CouplingOptions& options, View<T, 3> plan, const Coupling<T>& result) {
  const int64_t problems = source.rows(), k = source.cols();
  CFAA_ASSERT(k <= std::numeric_limits<int>::max() / 2);
  CouplingProblem<T> problem{};
  problem.source = source.data;
  problem.target = target.data;
  problem.plan = plan.data;
  problem.source_gradient = result.gradient.data;
  problem.target_gradient = result.gradient.data + problems * k;
  problem.loss = result.loss.data;
  problem.marginal_error = result.marginal_error.data;
  problem.iterations = result.iterations.data;
  problem.converged = result.converged.data;
  problem.latch = context.fault_latch();
  problem.k = static_cast<int>(k);
  problem.most_iterations = static_cast<int>(options.iterations);
  problem.epsilon = options.epsilon;
  problem.tolerance = options.tolerance;
  problem.loss_scale =
      options.scale == OtScale::paper ? 1 / (static_cast<double>(k) * static_cast<double>(k)) : 1;
  if (options.solver == OtSolver::exact) {
    sorted_coupling(context, problem, problems);
  } else {
    sinkhorn(context, problem, problems);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(coupling);

}  // namespace cfaa::cuda
