// Sinkhorn for up to 128 samples a side: a block per problem, and which tile it takes. The solver
// stands in kernels/sinkhorn_registers.cuh.

#include "kernels/sinkhorn_registers.cuh"

#include "cuda/launch.h"
#include "host/core/error.h"
#include "host/core/instantiate.h"

namespace cfaa::cuda {
namespace {

// report: sinkhorn_registers_kernel threads=256 bytes=4*Q*K*T flops=4*J*Q*K*K exps=4*Q*K*K
template <class T, int R>
__global__ void __launch_bounds__(kTileThreads, sizeof(T) == 4 ? 2 : 1)
    sinkhorn_registers_kernel(const CouplingProblem<T> problem) {
  constexpr int kCapacity = kTileLanes * R;
  const int q = blockIdx.x, k = problem.k;
  const int64_t first = int64_t{q} * k;
  const T* source = problem.source + first;
  const T* target = problem.target + first;
  const SampleUnit unit = sample_unit(source, target, k);
  if (unit.range != SampleRange::ordinary) {
    report_without_range(problem, q, unit);
    return;
  }

  CFAA_SHARED(T, x, kCapacity);
  CFAA_SHARED(T, y, kCapacity);
  CFAA_SHARED(T, f, kCapacity);
  CFAA_SHARED(T, g, kCapacity);
  CFAA_SHARED(T, v, kCapacity);
  CFAA_SHARED(T, most, kCapacity);
  CFAA_SHARED(T, parts, kTileWarps * kCapacity);
  RegisterSinkhorn<T, R> solver({x, y, f, g, v, most, parts},
                                entropic_units(problem, source, target, unit.exponent), k);
  solver.load_samples(source, target, unit.exponent);
  const int used = solver.solve(problem.most_iterations, problem.tolerance);
  solver.make_plan(problem.plan == nullptr ? nullptr : problem.plan + first * k);

  const double factor = 2 * problem.loss_scale;
  double error =
      solver.write_source_gradient(factor, unit.exponent, problem.source_gradient + first);
  error += solver.write_target_gradient(factor, unit.exponent, problem.target_gradient + first);
  error = block_sum(error);
  const double loss = block_sum(solver.plan_cost());
  if (threadIdx.x == 0) report(problem, q, unit, loss, error, used);
}

}  // namespace

template <class T>
void sinkhorn_in_registers(Context& context, const CouplingProblem<T>& problem, int64_t problems) {
  const cudaStream_t stream = device_of(context).stream();
  const dim3 grid(static_cast<unsigned>(problems)), block(kTileThreads);
  CFAA_ASSERT(problem.k <= kMostInRegisters<T>);
  if (problem.k <= 2 * kTileLanes) {
    launch(stream, sinkhorn_registers_kernel<T, 2>, grid, block, 0, problem);
  } else if (problem.k <= 4 * kTileLanes) {
    launch(stream, sinkhorn_registers_kernel<T, 4>, grid, block, 0, problem);
  } else if constexpr (kMostInRegisters<T> > 4 * kTileLanes) {
    launch(stream, sinkhorn_registers_kernel<T, 8>, grid, block, 0, problem);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(sinkhorn_in_registers);

}  // namespace cfaa::cuda
