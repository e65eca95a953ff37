// Couplings on the GPU (host/ops/coupling.h has the contract): the problems as the kernels see
// them, and which kernel solves them.

#include "cuda/nvtx.h"
#include "host/core/error.h"
#include "host/core/instantiate.h"
#include "kernels/sinkhorn.cuh"

namespace cfaa::cuda {

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
    return;
  }
  const Range range("entropic couplings");
  if (k <= kMostInRegisters<T>) {
    sinkhorn_in_registers(context, problem, problems);
  } else {
    sinkhorn_in_shared(context, problem, problems);
  }
}

CFAA_FOR_FLOAT_AND_DOUBLE(coupling);

}  // namespace cfaa::cuda
