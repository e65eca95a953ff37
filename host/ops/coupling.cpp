#include "host/ops/coupling.h"

#include "host/core/error.h"

namespace cfaa {
namespace {

void check_options(const CouplingOptions& options) {
  if (!(options.epsilon > 0)) throw Error("epsilon must be greater than 0");
  if (options.iterations < 1) throw Error("sinkhorn_iterations must be at least 1");
  if (!(options.tolerance >= 0)) throw Error("sinkhorn_tolerance must be at least 0");
}

}  // namespace

template <class T>
Coupling<T> coupling(Context& context, MatrixView<const T> source, MatrixView<const T> target,
                     const CouplingOptions& options, View<T, 3> plan) {
  check_options(options);
  CFAA_ASSERT(source.shape == target.shape && source.contiguous() && target.contiguous());
  const int64_t q = source.rows(), k = source.cols();
  CFAA_ASSERT(q >= 1 && k >= 1);
  CFAA_ASSERT(plan.data == nullptr || (plan.size() == q * k * k && plan.contiguous()));
  Arena& arena = context.scratch();

  Coupling<T> result;
  result.loss = arena.take<T, 1>({q});
  result.gradient = arena.take<T, 3>({2, q, k});
  result.iterations = arena.take<int32_t, 1>({q});
  result.marginal_error = arena.take<T, 1>({q});
  result.converged = arena.take<int32_t, 1>({q});

  const Arena::Scope scope(arena);
  CFAA_DISPATCH(context, coupling<T>)(context, source, target, options, plan, result);
  return result;
}

CFAA_FOR_FLOAT_AND_DOUBLE(coupling);

}  // namespace cfaa
