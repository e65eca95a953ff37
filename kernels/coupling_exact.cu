// Exact one-dimensional couplings on the GPU: with equal weights and a convex cost the optimal plan
// pairs the sorted samples, equal ones in the order of their indices. One block per problem sorts
// both sides in shared memory, or in global scratch where K is too large for that.

#include "cuda/launch.h"
#include "cuda/nvtx.h"
#include "host/core/instantiate.h"
#include "kernels/all_pairs.cuh"
#include "kernels/coupling.cuh"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
struct Ranked {
  T value;
  int index;
  __device__ bool operator<(const Ranked& other) const {
    return value < other.value || (value == other.value && index < other.index);
  }
};

// report: sorted_coupling_kernel<T,Shared<Ranked<T>>> threads=256 shared=4*K*T bytes=4*Q*K*T
//   flops=8*Q*K
// report: sorted_coupling_kernel<T,Ranked<T>*> threads=256 bytes=4*Q*K*T flops=8*Q*K
template <class T, class Vector>
__global__ void __launch_bounds__(kThreads)
    sorted_coupling_kernel(const CouplingProblem<T> problem, Ranked<T>* scratch) {
  const int q = blockIdx.x, k = problem.k, thread = threadIdx.x, room = sort_capacity(k);
  const T* source = problem.source + int64_t{q} * k;
  const T* target = problem.target + int64_t{q} * k;
  const SampleUnit unit = sample_unit(source, target, k);
  if (unit.range == SampleRange::not_finite) {
    report_without_range(problem, q, unit);
    return;
  }

  SharedArena arena;
  Ranked<T>* memory = std::is_pointer_v<Vector> ? scratch + int64_t{q} * 2 * room : nullptr;
  const Vector x = take_vector<Vector>(arena, memory, room);
  const Vector y = take_vector<Vector>(arena, memory, room);
  for (int i = thread; i < k; i += kThreads) {
    x[i] = Ranked<T>{std::ldexp(source[i], -unit.exponent), i};
    y[i] = Ranked<T>{std::ldexp(target[i], -unit.exponent), i};
  }
  const Ranked<T> last{std::numeric_limits<T>::infinity(), k};
  block_sort(x, k, last);
  block_sort(y, k, last);

  T* plan = problem.plan == nullptr ? nullptr : problem.plan + int64_t{q} * k * k;
  if (plan != nullptr) {
    for (int64_t at = thread; at < int64_t{k} * k; at += kThreads) plan[at] = 0;
    __syncthreads();
  }
  const double share = 1.0 / k, factor = 2 * share * problem.loss_scale;
  double loss = 0;
  for (int rank = thread; rank < k; rank += kThreads) {
    const Ranked<T> a = x[rank], b = y[rank];
    const double difference = double(a.value) - double(b.value);
    const double gradient = std::ldexp(factor * difference, unit.exponent);
    loss += difference * difference;
    problem.source_gradient[int64_t{q} * k + a.index] = T(gradient);
    problem.target_gradient[int64_t{q} * k + b.index] = T(-gradient);
    if (plan != nullptr) plan[int64_t{a.index} * k + b.index] = T(share);
  }
  loss = block_sum(loss) * share;
  if (thread == 0) report(problem, q, unit, loss, 0.0, 0);
}

}  // namespace

template <class T>
void sorted_coupling(Context& context, const CouplingProblem<T>& problem, int64_t problems) {
  const Range range("exact couplings");
  Device& device = device_of(context);
  const dim3 grid(static_cast<unsigned>(problems)), block(kThreads);
  const int64_t room = sort_capacity(problem.k);
  const std::size_t in_shared = 2 * shared_bytes<Ranked<T>>(room);
  Ranked<T>* scratch = nullptr;
  if (in_shared <= device.shared_limit()) {
    launch(device.stream(), sorted_coupling_kernel<T, Shared<Ranked<T>>>, grid, block, in_shared,
           problem, scratch);
  } else {
    scratch = context.scratch().template take<Ranked<T>, 3>({problems, 2, room}).data;
    launch(device.stream(), sorted_coupling_kernel<T, Ranked<T>*>, grid, block, 0, problem,
           scratch);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(sorted_coupling);

}  // namespace cfaa::cuda
