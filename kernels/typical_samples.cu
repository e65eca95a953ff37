// Typical samples on the GPU (host/ops/typical_samples.h has the equations). One block per set and
// attribute, one launch for all of them: 4 sets of 300 attributes are 1200 blocks.
//
// The column is taken as x = (z - centre) / spread in a unit in which Psi_ij is proportional to
// 2^-(x_i - m_j)^2, and sorted once; the iterations then run on shared memory alone. Each needs the
// softmax's denominator of every row before any sample can move, and Psi (N x K) is not kept: two
// exponentials per pair (i, j) cost less than the room. That makes the kernel bound by
// exponentials: 2 N K per iteration and attribute.
//
// Z is (N, D) by rows and a block reads one column, so a 32-byte sector gives it one float in
// eight. A batch of the paper's size lies in L2 and is read once per block: not worth a transposed
// copy.

#include "cuda/launch.h"
#include "cuda/nvtx.h"
#include "host/core/instantiate.h"
#include "kernels/latch.cuh"
#include "kernels/typical_samples.cuh"

namespace cfaa::cuda {
namespace {

// 1 / alpha in units of the spread is kept within these bounds: beyond them Psi is a hard, or a
// uniform, assignment to the last bit.
template <class T>
constexpr double kLargestBandwidth = sizeof(T) == 4 ? 1e20 : 1e40;

// As many as the registers allow without spilling.
template <class T, class Vector>
constexpr int kBlocksPerProcessor = sizeof(T) == 4 && !std::is_pointer_v<Vector> ? 4 : 2;

template <class T>
struct ForwardSize {
  int sorted, n, k;
  ForwardSize(int rows, int samples) : sorted(sort_capacity(rows)), n(rows), k(samples) {}
  int64_t elements() const { return int64_t{sorted} + 2 * int64_t{n} + k; }
  std::size_t bytes() const {
    return shared_bytes<T>(sorted) + 2 * shared_bytes<T>(n) + shared_bytes<T>(k);
  }
};

struct Extent {
  double low, half;  // the smallest element; half the range, which cannot overflow
};

template <class T>
__device__ Extent extent_of(const TypicalSet<T>& set, int q) {
  double low = set.z[q], high = low;
  for (int i = threadIdx.x; i < set.n; i += kPairThreads) {
    const double z = set.z[i * set.stride + q];
    low = min(low, z);
    high = max(high, z);
  }
  low = block_min(low);
  high = block_max(high);
  return {low, high / 2 - low / 2};
}

struct Statistics {
  double mean, variance;  // in units of 2^exponent, the mean counted from the smallest element
};

template <class T>
__device__ Statistics statistics_of(const TypicalSet<T>& set, int q, double low, int exponent) {
  double sum = 0;
  for (int i = threadIdx.x; i < set.n; i += kPairThreads) {
    sum += std::ldexp(double(set.z[i * set.stride + q]), -exponent) - std::ldexp(low, -exponent);
  }
  const double mean = block_sum(sum) / set.n;
  double squares = 0;
  for (int i = threadIdx.x; i < set.n; i += kPairThreads) {
    const double z =
        std::ldexp(double(set.z[i * set.stride + q]), -exponent) - std::ldexp(low, -exponent);
    squares += (z - mean) * (z - mean);
  }
  return {mean, block_sum(squares) / set.n};
}

// Rounding may put a sample a bit below the one before it; a running maximum puts them in order.
// By one warp, each lane a stretch of the samples.
template <class T, class Vector>
__device__ void restore_order(Vector m, int k) {
  if (warp_index() == 0) {
    const int lane = lane_index(), stretch = (k + 31) / 32;
    const int begin = min(lane * stretch, k), end = min(begin + stretch, k);
    T most = -std::numeric_limits<T>::infinity();
    for (int j = begin; j < end; ++j) most = max(most, T(m[j]));
    for (int distance = 1; distance < 32; distance *= 2) {
      const T before = __shfl_up_sync(full_warp, most, distance);
      if (lane >= distance) most = max(most, before);
    }
    most = __shfl_up_sync(full_warp, most, 1);
    if (lane == 0) most = -std::numeric_limits<T>::infinity();
    for (int j = begin; j < end; ++j) {
      const T value = m[j];
      if (value < most) m[j] = most;
      most = max(most, value);
    }
  }
  __syncthreads();
}

// How a pair's attribute is scaled: in x = (z - centre) / spread times `unit`.
template <class T>
struct Scale {
  T centre, spread, bandwidth;
  T column_std;
  double unit;
  bool finite;
};

// Both blocks of a pair find the pair's spread, in the same order and so with the same bits.
template <class T>
__device__ Scale<T> scale_of(const TypicalProblem<T>& problem, int s, int q) {
  const int pair = s % problem.pairs;
  const TypicalSet<T> source = problem.set[pair], target = problem.set[pair + problem.pairs];
  const Extent source_extent = extent_of(source, q), target_extent = extent_of(target, q);
  const double half = max(source_extent.half, target_extent.half);
  const int exponent = half > 0 && half < HUGE_VAL ? std::ilogb(half) : 0;
  const Statistics of_source = statistics_of(source, q, source_extent.low, exponent);
  const Statistics of_target = statistics_of(target, q, target_extent.low, exponent);
  const Statistics own = s < problem.pairs ? of_source : of_target;
  const double own_low = s < problem.pairs ? source_extent.low : target_extent.low;

  Scale<T> scale;
  scale.centre = T(std::ldexp(std::ldexp(own_low, -exponent) + own.mean, exponent));
  scale.spread = T(std::ldexp(std::sqrt((of_source.variance + of_target.variance) / 2), exponent));
  const double wanted = problem.relative
                            ? 1 / problem.alpha
                            : double(scale.spread) / problem.alpha * double(scale.spread);
  const double limit = kLargestBandwidth<T>;
  scale.bandwidth = scale.spread > 0 ? T(min(max(wanted, 1 / limit), limit)) : T(0);
  scale.unit = exponent_unit(scale.bandwidth);
  scale.finite = std::isfinite(scale.spread) && std::isfinite(own.variance);
  scale.column_std = scale.finite ? T(std::ldexp(std::sqrt(own.variance), exponent))
                                  : std::numeric_limits<T>::quiet_NaN();
  return scale;
}

// The column, scaled and in order, and the samples at its midpoint quantiles.
template <class T, class Vector>
__device__ void start_at_quantiles(const TypicalSet<T>& set, int q, int k, const Scale<T>& scale,
                                   Vector x, Vector m) {
  const int n = set.n;
  for (int i = threadIdx.x; i < n; i += kPairThreads) {
    x[i] = scaled(set.z[i * set.stride + q], scale.centre, scale.spread, scale.unit);
  }
  block_sort(x, n, std::numeric_limits<T>::infinity());
  for (int j = threadIdx.x; j < k; j += kPairThreads) {
    const double position = min(max((j + 0.5) * n / k - 0.5, 0.0), double(n - 1));
    const int below = min(int(position), n - 1), above = min(below + 1, n - 1);
    const double low = T(x[below]), high = T(x[above]);
    m[j] = T(low + (position - below) * (high - low));
  }
  __syncthreads();
}

// The samples in the unit of Z, and their standard deviation.
template <class T, class Vector>
__device__ T write_samples(Vector m, int k, const Scale<T>& scale, T* samples) {
  const double from_unit = scale.spread > 0 ? double(scale.spread) / scale.unit : 0;
  double sum = 0, squares = 0;
  for (int j = threadIdx.x; j < k; j += kPairThreads) {
    const double mj = T(m[j]);
    samples[j] = T(double(scale.centre) + mj * from_unit);
    sum += mj;
  }
  const double mean = block_sum(sum) / k;
  for (int j = threadIdx.x; j < k; j += kPairThreads) {
    const double deviation = double(T(m[j])) - mean;
    squares += deviation * deviation;
  }
  return T(std::sqrt(block_sum(squares) / k) * from_unit);
}

// report: typical_samples_kernel<T,Shared<T>> threads=256 shared=(2048+3*N+K)*T bytes=S*D*(N+3*K)*T
//   flops=12*I*S*D*N*K exps=2*I*S*D*N*K
// report: typical_samples_kernel<T,T*> threads=256 shared=2048*T bytes=S*D*(N+3*K)*T
//   flops=12*I*S*D*N*K exps=2*I*S*D*N*K
template <class T, class Vector>
__global__ void __launch_bounds__(kPairThreads, kBlocksPerProcessor<T, Vector>)
    typical_samples_kernel(const TypicalProblem<T> problem) {
  const int q = blockIdx.x, s = blockIdx.y, pair = s % problem.pairs;
  const TypicalSet<T> set = problem.set[s];
  const int n = set.n, k = problem.k, thread = threadIdx.x;
  const int64_t column_index = int64_t{s} * problem.attributes + q;
  const int64_t pair_index = int64_t{pair} * problem.attributes + q;

  SharedArena arena;
  const Partials<T> partials = take_partials<T>(arena);
  T* scratch = problem.scratch + column_index * problem.scratch_count;
  const Vector x = take_vector<Vector>(arena, scratch, sort_capacity(n));
  const Vector nearest = take_vector<Vector>(arena, scratch, n);
  const Vector log_sum = take_vector<Vector>(arena, scratch, n);
  const Vector m = take_vector<Vector>(arena, scratch, k);

  const Scale<T> scale = scale_of(problem, s, q);
  const T spread = scale.spread;
  const double unit = scale.unit;
  if (thread == 0) {
    problem.out.centre.data[column_index] = scale.centre;
    problem.out.column_std.data[column_index] = scale.column_std;
  }
  if (thread == 0 && s == pair) {
    problem.out.spread.data[pair_index] = spread;
    problem.out.bandwidth.data[pair_index] = scale.bandwidth;
  }
  T* samples = problem.out.samples.data + column_index * k;
  T* previous = problem.out.previous.data + column_index * k;
  T* weight = problem.out.weight.data + column_index * k;
  if (!scale.finite) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (int j = thread; j < k; j += kPairThreads) samples[j] = previous[j] = weight[j] = nan;
    if (thread != 0) return;
    problem.out.sample_std.data[column_index] = nan;
    latch_fault(problem.latch, FaultCode::not_finite, FaultSite::typical_samples, s, q);
    return;
  }

  start_at_quantiles(set, q, k, scale, x, m);

  struct Row {
    Point<T> point;
    T x, offset;
  };
  const auto point = [=](int i) -> Point<T> {
    const T near = nearest[i];
    return {near, 2 * T(x[i]) - near};
  };
  const auto sample = [=](int j) -> T { return m[j]; };

  for (int iteration = 1; iteration <= problem.iterations; ++iteration) {
    const bool last = iteration == problem.iterations;
    for (int i = thread; i < n; i += kPairThreads) {
      nearest[i] = nearest_sample(T(x[i]), k, sample);
    }
    __syncthreads();

    // log_sum_i = log2 sum_j 2^((x_i - nearest_i)^2 - (x_i - m_j)^2)
    sum_rows<T>(
        n, k, partials, point, sample,
        [](Two<T>& sum, const Point<T>& p, T mj) { sum.a += p.weight(mj, 0); },
        [=](int i, const Two<T>& sum) { log_sum[i] = std::log2(sum.a); });

    // s_j = sum_i Psi_ij, m_j = sum_i Psi_ij x_i / s_j
    sum_rows<T>(
        k, n, partials, sample,
        [=](int i) -> Row {
          return {point(i), x[i], -T(log_sum[i])};
        },
        [](Two<T>& sum, T mj, const Row& row) {
          const T psi = row.point.weight(mj, row.offset);
          sum.a += psi;
          sum.b = std::fma(psi, row.x, sum.b);
        },
        [=](int j, const Two<T>& sum) {
          const T before = m[j];
          if (sum.a > 0) m[j] = sum.b / sum.a;
          if (!last) return;
          previous[j] = spread > 0 ? T(double(before) / unit) : T(0);
          weight[j] = sum.a;
        });
    restore_order<T>(m, k);
  }

  const T deviation = write_samples<T>(m, k, scale, samples);
  if (thread == 0) problem.out.sample_std.data[column_index] = deviation;
}

}  // namespace

template <class T>
void typical_samples(Context& context, EmbeddingPairs<T> pairs,
                     const TypicalSamplesOptions& options, const TypicalSamples<T>& result) {
  const Range range("typical samples");
  Device& device = device_of(context);
  TypicalProblem<T> problem = describe_sets(context, pairs, result);
  problem.iterations = static_cast<int>(options.iterations);
  problem.relative = options.alpha_scale == AlphaScale::relative;
  problem.alpha = options.alpha;

  const ForwardSize<T> size(most_rows(problem), problem.k);
  const dim3 grid(problem.attributes, 2 * problem.pairs), block(kPairThreads);
  const std::size_t in_shared = partials_bytes<T>() + size.bytes();
  if (in_shared <= device.shared_limit()) {
    launch(device.stream(), typical_samples_kernel<T, Shared<T>>, grid, block, in_shared, problem);
  } else {
    problem.scratch_count = size.elements();
    const int64_t blocks = int64_t{grid.x} * grid.y;
    problem.scratch = context.scratch().template take<T, 1>({blocks * problem.scratch_count}).data;
    launch(device.stream(), typical_samples_kernel<T, T*>, grid, block, partials_bytes<T>(),
           problem);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(typical_samples);

}  // namespace cfaa::cuda
