// Sinkhorn for more samples than registers hold (kernels/sinkhorn.cuh has the iteration). One block
// per problem.
//
// G stands in shared memory, 4 K^2 bytes in float: K up to 230 on sm_90, 190 on sm_80, 148 on
// sm_86, sm_89 and sm_120. Its rows have an odd stride, so that walking along rows and along
// columns are both free of bank conflicts. Where G does not fit it is not stored: every use costs
// an exponential, and no memory.

#include "cuda/launch.h"
#include "host/core/instantiate.h"
#include "kernels/all_pairs.cuh"
#include "kernels/sinkhorn.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kVectors = 7;  // x, y, f, g, u, v, next

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
  Vector next;       // (K)  scalings of the source under way
  Shared<T> kernel;  // (K, K | 1) where it is stored
  T beta, inverse_beta, share;

  __device__ Sinkhorn(SharedArena& arena, T* scratch, const EntropicUnits<T>& units, int count)
      : k(count), beta(units.beta), inverse_beta(units.inverse_beta), share(units.share) {
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
          ordinary = ordinary && is_ordinary(value);
        });
    return __syncthreads_and(ordinary);
  }

  __device__ void load_samples(const T* source_samples, const T* target_samples,
                               int exponent) const {
    for (int i = threadIdx.x; i < k; i += kPairThreads) {
      source.samples[i] = std::ldexp(source_samples[i], -exponent);
      target.samples[i] = std::ldexp(target_samples[i], -exponent);
      target.potential[i] = 0;
    }
    __syncthreads();
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

// report: sinkhorn_shared_kernel<T,Shared<T>,true> threads=256
//   shared=(2048+7*K+K*(K|1))*T bytes=4*Q*K*T flops=4*J*Q*K*K exps=8*Q*K*K
// report: sinkhorn_shared_kernel<T,Shared<T>,false> threads=256
//   shared=(2048+7*K)*T bytes=4*Q*K*T flops=10*J*Q*K*K exps=2*J*Q*K*K
// report: sinkhorn_shared_kernel<T,T*,false> threads=256
//   shared=2048*T bytes=4*Q*K*T flops=10*J*Q*K*K exps=2*J*Q*K*K
template <class T, class Vector, bool stored>
__global__ void __launch_bounds__(kPairThreads, sizeof(T) == 4 ? 2 : 1)
    sinkhorn_shared_kernel(const CouplingProblem<T> problem, T* scratch) {
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
      arena, std::is_pointer_v<Vector> ? scratch + kVectors * first : nullptr,
      entropic_units(problem, source_samples, target_samples, unit.exponent), k);
  solver.load_samples(source_samples, target_samples, unit.exponent);
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

}  // namespace

template <class T>
void sinkhorn_in_shared(Context& context, const CouplingProblem<T>& problem, int64_t problems) {
  Device& device = device_of(context);
  const int64_t k = problem.k;
  const dim3 grid(static_cast<unsigned>(problems)), block(kPairThreads);
  const std::size_t least = partials_bytes<T>();
  const std::size_t vectors = least + kVectors * shared_bytes<T>(k);
  const std::size_t kernel = vectors + shared_bytes<T>(k * (k | 1));
  T* const none = nullptr;
  if (kernel <= device.shared_limit()) {
    launch(device.stream(), sinkhorn_shared_kernel<T, Shared<T>, true>, grid, block, kernel,
           problem, none);
  } else if (vectors <= device.shared_limit()) {
    launch(device.stream(), sinkhorn_shared_kernel<T, Shared<T>, false>, grid, block, vectors,
           problem, none);
  } else {
    T* scratch = context.scratch().template take<T, 3>({problems, kVectors, k}).data;
    launch(device.stream(), sinkhorn_shared_kernel<T, T*, false>, grid, block, least, problem,
           scratch);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(sinkhorn_in_shared);

}  // namespace cfaa::cuda
