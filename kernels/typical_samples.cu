// Typical samples on the GPU (host/ops/typical_samples.h has the equations). One block per set and
// attribute, one launch for all of them: 4 sets of 300 attributes are 1200 blocks.
//
// The column is taken as x = (z - centre) / spread in a unit in which Psi_ij is proportional to
// 2^-(x_i - m_j)^2, and sorted once; the iterations then run on shared memory and registers alone.
// Each needs the softmax's denominator of every row before any sample can move.
//
// Up to 128 samples, sixteen lanes hold four rows of Psi whole, in registers
// (kernels/lane_tile.cuh): the denominator comes by shuffles, and the same weights go on to the
// columns' sums, which stay in registers until all rows are through. One exponential per pair (i,
// j), and the kernel is bound by the six additions and multiplications around it. Above that Psi is
// not kept but made twice, once along the rows and once along the columns.
//
// Z is (N, D) by rows and a block reads one column, so a 32-byte sector gives it one float in
// eight. A batch of the paper's size lies in L2 and is read once per block: not worth a transposed
// copy.

#include "cuda/launch.h"
#include "cuda/nvtx.h"
#include "host/core/instantiate.h"
#include "kernels/lane_tile.cuh"
#include "kernels/latch.cuh"
#include "kernels/typical_column.cuh"

namespace cfaa::cuda {
namespace {

// Rows of Psi that sixteen lanes hold at a time.
constexpr int kTileRows = 4;
constexpr int kTileGroups = kPairThreads / kTileLanes;

// As many as the registers allow without spilling.
template <class T, class Vector, int columns>
constexpr int blocks_per_processor() {
  if (columns == 8) return sizeof(T) == 4 ? 2 : 1;
  return sizeof(T) == 4 && !std::is_pointer_v<Vector> ? 3 : 2;
}

template <class T>
struct ForwardSize {
  int sorted, n, k;
  ForwardSize(int rows, int samples) : sorted(sort_capacity(rows)), n(rows), k(samples) {}
  int64_t elements() const { return int64_t{sorted} + 2 * int64_t{n} + k; }
  std::size_t bytes() const {
    return shared_bytes<T>(sorted) + 2 * shared_bytes<T>(n) + shared_bytes<T>(k);
  }
};

// What a block iterates on.
template <class T, class Vector>
struct Column {
  int n, k;
  Vector x, nearest, log_sum, m;  // (n), (n), (n), (k)
  Partials<T> partials;

  __device__ Point<T> point(int i) const {
    const T near = nearest[i];
    return {near, 2 * T(x[i]) - near};
  }

  // An iteration with Psi made twice. finish(j, s_j, sum_i Psi_ij x_i).
  template <class Finish>
  __device__ void iterate_twice(Finish finish) const {
    struct Row {
      Point<T> point;
      T x, offset;
    };
    const Column own = *this;
    const auto sample = [=](int j) -> T { return own.m[j]; };

    // log_sum_i = log2 sum_j 2^((x_i - nearest_i)^2 - (x_i - m_j)^2)
    sum_rows<T>(
        n, k, partials, [=](int i) { return own.point(i); }, sample,
        [](Two<T>& sum, const Point<T>& p, T mj) { sum.a += p.weight(mj, 0); },
        [=](int i, const Two<T>& sum) { own.log_sum[i] = std::log2(sum.a); });

    sum_rows<T>(
        k, n, partials, sample,
        [=](int i) -> Row {
          return {own.point(i), own.x[i], -T(own.log_sum[i])};
        },
        [](Two<T>& sum, T mj, const Row& row) {
          const T psi = row.point.weight(mj, row.offset);
          sum.a += psi;
          sum.b = std::fma(psi, row.x, sum.b);
        },
        [=](int j, const Two<T>& sum) { finish(j, sum.a, sum.b); });
  }

  // The same with Psi in registers, for k of at most 16 columns. A missing sample stands at
  // infinity and so weighs nothing; a missing row counts for nothing.
  template <int columns, class Finish>
  __device__ void iterate_in_registers(const Shared<T>& weights, const Shared<T>& moments,
                                       Finish finish) const {
    T sample[columns], weight[columns], moment[columns];
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      const int j = tile_lane() + kTileLanes * c;
      sample[c] = j < k ? T(m[j]) : std::numeric_limits<T>::infinity();
      weight[c] = moment[c] = 0;
    }
    for (int base = 0; base < n; base += kTileGroups * kTileRows) {
      const int first = base + tile_group() * kTileRows;
      T psi[kTileRows][columns], sums[kTileRows], share[kTileRows];
#pragma unroll
      for (int r = 0; r < kTileRows; ++r) {
        const Point<T> p = point(min(first + r, n - 1));
        sums[r] = 0;
#pragma unroll
        for (int c = 0; c < columns; ++c) {
          psi[r][c] = p.weight(sample[c], 0);
          sums[r] += psi[r][c];
        }
      }
      const T sum = combine_rows<kTileRows>(sums, Sum{});
      spread_rows(first + tile_row<kTileRows>() < n ? 1 / sum : T(0), share);
#pragma unroll
      for (int r = 0; r < kTileRows; ++r) {
        const T at = share[r] * T(x[min(first + r, n - 1)]);
#pragma unroll
        for (int c = 0; c < columns; ++c) {
          weight[c] = std::fma(psi[r][c], share[r], weight[c]);
          moment[c] = std::fma(psi[r][c], at, moment[c]);
        }
      }
    }
    put_columns(weights, weight, Sum{});
    put_columns(moments, moment, Sum{});
    __syncthreads();
    const int j = threadIdx.x;
    if (j < k) {
      finish(j, column_total<columns, kPairWarps>(weights, j, Sum{}),
             column_total<columns, kPairWarps>(moments, j, Sum{}));
    }
    __syncthreads();
  }
};

// Psi in registers, or (columns = 0) made twice.
// report: typical_samples_kernel<T,Shared<T>,8> threads=256 shared=(2048+3*N+K)*T
//   bytes=S*D*(N+3*K)*T flops=8*I*S*D*N*K exps=I*S*D*N*K
// report: typical_samples_kernel<T,Shared<T>,4> threads=256 shared=(2048+3*N+K/2)*T
//   bytes=S*D*(N+3*K/2)*T flops=4*I*S*D*N*K exps=I*S*D*N*K/2
// report: typical_samples_kernel<T,Shared<T>,2> threads=256 shared=(2048+3*N+K/4)*T
//   bytes=S*D*(N+3*K/4)*T flops=2*I*S*D*N*K exps=I*S*D*N*K/4
// report: typical_samples_kernel<T,Shared<T>,0> threads=256 shared=(2048+3*N+K)*T
//   bytes=S*D*(N+3*K)*T flops=12*I*S*D*N*K exps=2*I*S*D*N*K
// report: typical_samples_kernel<T,T*,0> threads=256 shared=2048*T bytes=S*D*(N+3*K)*T
//   flops=12*I*S*D*N*K exps=2*I*S*D*N*K
template <class T, class Vector, int columns>
__global__ void __launch_bounds__(kPairThreads, (blocks_per_processor<T, Vector, columns>()))
    typical_samples_kernel(const TypicalProblem<T> problem) {
  const int q = blockIdx.x, s = blockIdx.y, pair = s % problem.pairs;
  const TypicalSet<T> set = problem.set[s];
  const int n = set.n, k = problem.k, thread = threadIdx.x;
  const int64_t column_index = int64_t{s} * problem.attributes + q;
  const int64_t pair_index = int64_t{pair} * problem.attributes + q;

  SharedArena arena;
  Partials<T> partials;
  Shared<T> weights, moments;
  if constexpr (columns == 0) {
    partials = take_partials<T>(arena);
  } else {
    weights = arena.take<T>(kPairWarps * kTileLanes * columns);
    moments = arena.take<T>(kPairWarps * kTileLanes * columns);
  }
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

  const Column<T, Vector> column{n, k, x, nearest, log_sum, m, partials};
  const auto sample = [=](int j) -> T { return m[j]; };
  for (int iteration = 1; iteration <= problem.iterations; ++iteration) {
    const bool last = iteration == problem.iterations;
    for (int i = thread; i < n; i += kPairThreads) {
      nearest[i] = nearest_sample(T(x[i]), k, sample);
    }
    __syncthreads();

    // s_j = sum_i Psi_ij, m_j = sum_i Psi_ij x_i / s_j
    const auto finish = [=](int j, T sum, T moment) {
      const T before = m[j];
      if (sum > 0) m[j] = moment / sum;
      if (!last) return;
      previous[j] = spread > 0 ? T(double(before) / unit) : T(0);
      weight[j] = sum;
    };
    if constexpr (columns == 0) {
      column.iterate_twice(finish);
    } else {
      column.template iterate_in_registers<columns>(weights, moments, finish);
    }
    restore_order<T>(m, k);
  }

  const T deviation = write_samples<T>(m, k, scale, samples);
  if (thread == 0) problem.out.sample_std.data[column_index] = deviation;
}

template <class T>
auto kernel_for(int k) {
  if (k <= 2 * kTileLanes) return typical_samples_kernel<T, Shared<T>, 2>;
  if (k <= 4 * kTileLanes) return typical_samples_kernel<T, Shared<T>, 4>;
  if (k <= 8 * kTileLanes) return typical_samples_kernel<T, Shared<T>, 8>;
  return typical_samples_kernel<T, Shared<T>, 0>;
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
    const auto kernel = kernel_for<T>(problem.k);
    launch(device.stream(), kernel, grid, block, in_shared, problem);
  } else {
    problem.scratch_count = size.elements();
    const int64_t blocks = int64_t{grid.x} * grid.y;
    problem.scratch = context.scratch().template take<T, 1>({blocks * problem.scratch_count}).data;
    launch(device.stream(), typical_samples_kernel<T, T*, 0>, grid, block, partials_bytes<T>(),
           problem);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(typical_samples);

}  // namespace cfaa::cuda
