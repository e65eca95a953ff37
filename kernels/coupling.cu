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

// One problem, solved by one block.
template <class T, class Vector, bool stored>
struct Sinkhorn {
  using S = Side<T, Vector>;

  int k;
  Partials<T> partials;
  S source, target;
  Vector next;                  // (K)  scalings of the source under way
  Shared<T> kernel;             // (K, K | 1) where it is stored
  T beta, inverse_beta, share;  // share = 1/K

  __device__ Sinkhorn(SharedArena& arena, T* scratch, int count) : k(count) {
    partials = take_partials<T>(arena);
    const auto take = [&] { return take_vector<Vector>(arena, scratch, k); };
    const int row = k | 1;
    source = {take(), take(), take(), row};
    target = {take(), take(), take(), 1};
    next = take();
    if constexpr (stored) kernel = arena.take<T>(int64_t{k} * row);
  }

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

  __device__ void make_kernel() const {
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

  // Samples (K) of both sides times 2^-exponent. Returns the mean of their costs,
  //   mean(c) = var(x) + var(y) + (mean(x) - mean(y))^2, counted from the first sample.
  __device__ double load_samples(const T* source_samples, const T* target_samples,
                                 int exponent) const {
    const T origin = std::ldexp(source_samples[0], -exponent);
    double x_sum = 0, y_sum = 0;
    for (int i = threadIdx.x; i < k; i += kPairThreads) {
      const T x = std::ldexp(source_samples[i], -exponent);
      const T y = std::ldexp(target_samples[i], -exponent);
      source.samples[i] = x;
      target.samples[i] = y;
      target.potential[i] = 0;
      x_sum += double(x) - double(origin);
      y_sum += double(y) - double(origin);
    }
    const double x_mean = block_sum(x_sum) / k, y_mean = block_sum(y_sum) / k;
    double squares = 0;
    for (int i = threadIdx.x; i < k; i += kPairThreads) {
      const double x = double(T(source.samples[i])) - double(origin) - x_mean;
      const double y = double(T(target.samples[i])) - double(origin) - y_mean;
      squares += x * x + y * y;
    }
    return block_sum(squares) / k + (x_mean - y_mean) * (x_mean - y_mean);
  }

  __device__ void set_epsilon(double epsilon, double mean_cost) {
    const double wanted = 1.4426950408889634 / (min(epsilon, kLargestEpsilon<T>) * mean_cost);
    beta = T(min(wanted, double(std::numeric_limits<T>::max())));
    inverse_beta = T(1 / wanted);
    share = T(1.0 / k);
  }

  // An iteration in the log domain, from the target's potential.
  __device__ void log_iteration() const {
    log_half_step(source, target);
    log_half_step(target, source);
    make_kernel();
  }

  // Returns how many iterations it took, of at most `most`.
  __device__ int iterate(int most, double tolerance) {
    log_iteration();
    int used = 1;
    for (; used < most; ++used) {
      T error;
      const bool ordinary = half_step(source, target, next, error);
      if (tolerance > 0 && block_sum(double(error)) <= tolerance) break;
      if (!ordinary) {
        absorb(target);
        log_iteration();
        continue;
      }
      const Vector previous = source.scaling;
      source.scaling = next;
      next = previous;
      if (!half_step(target, source, target.scaling, error)) {
        absorb(source);
        log_half_step(target, source);
        make_kernel();
      }
    }
    return used;
  }

  // The plan, for `out` (K, K) where somebody wants it. G's place then holds it, target.potential
  // the columns' maxima and target.scaling their factors.
  __device__ void make_plan(T* out) const {
    absorb(source);
    log_sums(target, source, [this](int j, T most, T sum) {
      target.potential[j] = most;
      target.scaling[j] = share / sum;
    });
    const int64_t entries = int64_t{k} * k;
    for (int64_t at = threadIdx.x; at < entries; at += kPairThreads) {
      if (!stored && out == nullptr) break;
      const Sample<T> x = load(source, int(at / k)), y = load(target, int(at % k));
      const T value = make_plan_entry(x, y);
      if constexpr (stored) kernel[x.offset + y.offset] = value;
      if (out != nullptr) out[at] = value;
    }
    __syncthreads();
  }
  __device__ T make_plan_entry(const Sample<T>& x, const Sample<T>& y) const {
    return std::exp2(beta * (reduced(x.potential, x.at, y.at) - y.potential)) * y.scaling;
  }
  __device__ T plan_entry(const Sample<T>& x, const Sample<T>& y) const {
    if constexpr (stored) return kernel[x.offset + y.offset];
    return make_plan_entry(x, y);
  }

  // d<plan, C>/dm of one side: gradient_i = 2^exponent factor sum_j plan_ij (m_i - m_j). Returns
  // the L1 distance of its marginal from 1/K, of this thread's samples.
  template <bool of_source>
  __device__ double write_gradient(double factor, int exponent, T* gradient) const {
    double error = 0;
    sum_rows<T>(
        k, k, partials, [this](int i) -> Sample<T> { return load(of_source ? source : target, i); },
        [this](int j) -> Sample<T> { return load(of_source ? target : source, j); },
        [this](Two<T>& sum, const Sample<T>& a, const Sample<T>& b) {
          const T mass = of_source ? plan_entry(a, b) : plan_entry(b, a);
          sum.a += mass;
          sum.b = std::fma(mass, a.at - b.at, sum.b);
        },
        [&](int i, const Two<T>& sum) {
          gradient[i] = T(std::ldexp(factor * double(sum.b), exponent));
          error += std::abs(double(sum.a) - 1.0 / k);
        });
    return error;
  }

  // <plan, C>, of this thread's samples.
  __device__ double plan_cost() const {
    double cost = 0;
    sum_rows<T>(
        k, k, partials, [this](int i) -> Sample<T> { return load(source, i); },
        [this](int j) -> Sample<T> { return load(target, j); },
        [this](Two<T>& sum, const Sample<T>& x, const Sample<T>& y) {
          const T difference = x.at - y.at;
          sum.a = std::fma(plan_entry(x, y) * difference, difference, sum.a);
        },
        [&](int, const Two<T>& sum) { cost += double(sum.a); });
    return cost;
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
  const int q = blockIdx.x, k = problem.k;
  const int64_t first = int64_t{q} * k;
  const T* source_samples = problem.source + first;
  const T* target_samples = problem.target + first;
  const SampleUnit unit = sample_unit(source_samples, target_samples, k);
  if (unit.range != SampleRange::ordinary) {
    report_without_range(problem, q, unit);
    return;
  }

  SharedArena arena;
  Sinkhorn<T, Vector, stored> solver(
      arena, std::is_pointer_v<Vector> ? scratch + kVectors * first : nullptr, k);
  const double mean_cost = solver.load_samples(source_samples, target_samples, unit.exponent);
  solver.set_epsilon(problem.epsilon, mean_cost);
  const int used = solver.iterate(problem.most_iterations, problem.tolerance);
  solver.make_plan(problem.plan == nullptr ? nullptr : problem.plan + first * k);

  const double factor = 2 * problem.loss_scale;
  double error =
      solver.template write_gradient<true>(factor, unit.exponent, problem.source_gradient + first);
  error +=
      solver.template write_gradient<false>(factor, unit.exponent, problem.target_gradient + first);
  error = block_sum(error);
  const double loss = block_sum(solver.plan_cost());
  if (threadIdx.x == 0) report(problem, q, unit, loss, error, used);
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
