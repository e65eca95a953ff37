#pragma once

// What the forward and the backward of the typical samples share: the sets as a kernel sees them,
// and the assignment of a point to the samples.

#include <algorithm>
#include <cmath>
#include <limits>

#include "cuda/device.h"
#include "host/core/error.h"
#include "host/ops/typical_samples.h"
#include "kernels/all_pairs.cuh"

namespace cfaa::cuda {

template <class T>
struct TypicalSet {
  const T* z;   // (n, D), rows `stride` apart
  T* gradient;  // the same shape, rows `gradient_stride` apart; backward only
  int64_t stride, gradient_stride;
  int n;
};

template <class T>
struct TypicalProblem {
  TypicalSet<T> set[2 * kMaxPairs];  // the pairs' sources, then their targets
  int pairs, attributes, k, iterations;
  bool relative;
  double alpha;
  TypicalSamples<T> out;
  Fault* latch;
  T* scratch;  // (2P, D, scratch_count) where columns do not fit in shared memory
  int64_t scratch_count;
};

// Factor from units of `spread` to those in which the weight of a distance r is 2^(-r^2).
template <class T>
__device__ double exponent_unit(T bandwidth) {
  return std::sqrt(double(bandwidth) * 1.4426950408889634);
}

// 0 for a column without spread.
template <class T>
__device__ T scaled(T z, T centre, T spread, double unit) {
  return spread > 0 ? T((double(z) - double(centre)) / double(spread) * unit) : T(0);
}

// 2^x, and 0 where that would be subnormal (in double: below 2^-1000). Of float it is one
// instruction of the special function unit, accurate to 2^-22; std::exp2 spends four more on
// subnormals.
__device__ __forceinline__ float fast_exp2(float x) {
#ifdef CFAA_EMULATED
  return x < -126.0f ? 0.0f : std::exp2(x);
#else
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#endif
}
__device__ __forceinline__ double fast_exp2(double x) {
  return x < -1000 ? 0.0 : std::exp2(x);
}

// A point x of the column with the sample next to it. The weight of sample m against that of the
// nearest is 2 to the power of (x - nearest)^2 - (x - m)^2, factored so that it is as accurate far
// out as near by.
template <class T>
struct Point {
  T nearest, mirrored;  // mirrored = 2 x - nearest

  // 2^offset times the weight.
  __device__ T weight(T m, T offset) const {
    return fast_exp2(std::fma(m - nearest, mirrored - m, offset));
  }
};

// Of ascending samples m(0) .. m(k - 1), the one nearest to x.
template <class T, class Samples>
__device__ T nearest_sample(T x, int k, Samples m) {
  int low = 0, high = k - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    const T a = m(middle), b = m(middle + 1);
    if (a + b <= 2 * x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return m(low);
}

template <class T>
TypicalProblem<T> describe_sets(Context& context, EmbeddingPairs<T> pairs,
                                const TypicalSamples<T>& result) {
  TypicalProblem<T> problem{};
  problem.pairs = static_cast<int>(pairs.size());
  problem.attributes = static_cast<int>(result.samples.shape[1]);
  problem.k = static_cast<int>(result.samples.shape[2]);
  problem.out = result;
  problem.latch = context.fault_latch();
  for (int p = 0; p < problem.pairs; ++p) {
    const auto add = [&](int s, const MatrixView<const T>& z) {
      CFAA_ASSERT(z.rows() <= std::numeric_limits<int>::max() / 2);
      problem.set[s] = {z.data, nullptr, z.stride[0], 0, static_cast<int>(z.rows())};
    };
    add(p, pairs[p].source);
    add(p + problem.pairs, pairs[p].target);
  }
  return problem;
}

template <class T>
int most_rows(const TypicalProblem<T>& problem) {
  int most = 0;
  for (int s = 0; s < 2 * problem.pairs; ++s) most = std::max(most, problem.set[s].n);
  return most;
}

}  // namespace cfaa::cuda
