// The backward of the typical samples on the GPU: dZ_iq += scale sum_j Psi_ij dM_jq / s_jq, with
// Psi found again from `previous`. One launch; a block takes 128 rows of one column.
//
// dM_j / s_j is taken in units of the largest |dM_j|, since s_j may be tiny.

#include "cuda/launch.h"
#include "cuda/nvtx.h"
#include "host/core/instantiate.h"
#include "kernels/typical_samples.cuh"

namespace cfaa::cuda {
namespace {

// Staged: the samples and their pulls lie in shared memory; otherwise they are made when needed.
// report: typical_samples_backward_kernel<T,true> threads=256 shared=(2304+2*K)*T
//   bytes=S*D*(3*N+3*K)*T flops=7*S*D*N*K exps=S*D*N*K
// report: typical_samples_backward_kernel<T,false> threads=256 shared=2304*T bytes=S*D*(3*N+3*K)*T
//   flops=7*S*D*N*K exps=S*D*N*K
template <class T, bool staged>
__global__ void __launch_bounds__(kPairThreads, sizeof(T) == 4 ? 3 : 2)
    typical_samples_backward_kernel(const TypicalProblem<T> problem, const T* samples_gradient,
                                    T scale) {
  const int attributes = problem.attributes, block = blockIdx.x;
  const int q = block % attributes, s = blockIdx.y, first = block / attributes * kRowsPerPass;
  const TypicalSet<T> set = problem.set[s];
  if (first >= set.n) return;
  const int rows = min(kRowsPerPass, set.n - first), k = problem.k, thread = threadIdx.x;
  const int64_t column_index = int64_t{s} * problem.attributes + q;
  const int64_t pair_index = int64_t{s % problem.pairs} * problem.attributes + q;
  const T centre = problem.out.centre.data[column_index];
  const T spread = problem.out.spread.data[pair_index];
  const double unit = exponent_unit(problem.out.bandwidth.data[pair_index]);
  const T* previous = problem.out.previous.data + column_index * k;
  const T* weight = problem.out.weight.data + column_index * k;
  const T* gradient = samples_gradient + column_index * k;

  SharedArena arena;
  const Partials<T> partials = take_partials<T>(arena);
  const Shared<Point<T>> points = arena.take<Point<T>>(kRowsPerPass);

  T largest = 0;
  for (int j = thread; j < k; j += kPairThreads) largest = max(largest, std::fabs(gradient[j]));
  largest = block_max(largest);
  if (largest == 0) return;

  // Sample j and its pull dM_j / s_j.
  const auto make = [=](int j) -> Two<T> {
    const T sum = weight[j];
    const T pull = sum > 0 ? gradient[j] / largest / sum : T(0);
    return {T(double(previous[j]) * unit), pull};
  };
  Shared<Two<T>> stage;
  if constexpr (staged) {
    stage = arena.take<Two<T>>(k);
    for (int j = thread; j < k; j += kPairThreads) stage[j] = make(j);
    __syncthreads();
  }
  const auto sample = [=](int j) -> Two<T> {
    if constexpr (staged) {
      return stage[j];
    } else {
      return make(j);
    }
  };

  for (int i = thread; i < rows; i += kPairThreads) {
    const T x = scaled(set.z[(first + i) * set.stride + q], centre, spread, unit);
    const T near = nearest_sample(x, k, [=](int j) -> T { return sample(j).a; });
    points[i] = Point<T>{near, 2 * x - near};
  }
  __syncthreads();
  sum_rows<T>(
      rows, k, partials, [=](int i) -> Point<T> { return points[i]; }, sample,
      [](Two<T>& sum, const Point<T>& point, const Two<T>& m) {
        const T e = point.weight(m.a, 0);
        sum.a += e;
        sum.b = std::fma(e, m.b, sum.b);
      },
      [=](int i, const Two<T>& sum) {
        T& out = set.gradient[(first + i) * set.gradient_stride + q];
        out += scale * (largest * (sum.b / sum.a));
      });
}

}  // namespace

template <class T>
void typical_samples_backward(Context& context, EmbeddingPairs<T> pairs,
                              const TypicalSamples<T>& forward, View<const T, 3> samples_gradient,
                              double scale, GradientPairs<T> gradients) {
  const Range range("typical samples backward");
  Device& device = device_of(context);
  TypicalProblem<T> problem = describe_sets(context, pairs, forward);
  for (int p = 0; p < problem.pairs; ++p) {
    const auto add = [&](TypicalSet<T>& set, const MatrixView<T>& gradient) {
      set.gradient = gradient.data;
      set.gradient_stride = gradient.stride[0];
    };
    add(problem.set[p], gradients[p].source);
    add(problem.set[p + problem.pairs], gradients[p].target);
  }

  // Both in x: y and z of a grid end at 65,535, which 8.4 million rows exceed.
  const int chunks = (most_rows(problem) + kRowsPerPass - 1) / kRowsPerPass;
  const dim3 grid(chunks * problem.attributes, 2 * problem.pairs), block(kPairThreads);
  const std::size_t least = partials_bytes<T>() + shared_bytes<Point<T>>(kRowsPerPass);
  const std::size_t in_shared = least + shared_bytes<Two<T>>(problem.k);
  if (in_shared <= device.shared_limit()) {
    launch(device.stream(), typical_samples_backward_kernel<T, true>, grid, block, in_shared,
           problem, samples_gradient.data, static_cast<T>(scale));
  } else {
    launch(device.stream(), typical_samples_backward_kernel<T, false>, grid, block, least, problem,
           samples_gradient.data, static_cast<T>(scale));
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(typical_samples_backward);

}  // namespace cfaa::cuda
