#pragma once

// A column of the typical samples, as its block sees it: how it is scaled, where its samples start,
// and how they are written. What lies between, the iterations, stands in typical_samples.cu.

#include "kernels/typical_samples.cuh"

namespace cfaa::cuda {

// 1 / alpha in units of the spread is kept within these bounds: beyond them Psi is a hard, or a
// uniform, assignment to the last bit.
template <class T>
constexpr double kLargestBandwidth = sizeof(T) == 4 ? 1e20 : 1e40;

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

}  // namespace cfaa::cuda
