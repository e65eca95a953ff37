#include "host/ops/slim.h"

#include "host/core/error.h"

namespace cfaa {
namespace {

void check_options(const SlimOptions& options) {
  if (!(options.nu > 0)) throw Error("nu must be greater than 0");
  if (!(options.delta > 0)) throw Error("delta must be greater than 0");
  if (options.iterations < 1) throw Error("slim_iterations must be at least 1");
  if (!(options.tolerance >= 0)) throw Error("slim_tolerance must be at least 0");
}

template <class View>
void check_sets(std::span<const View> sets, int64_t attributes) {
  for (const View& set : sets) {
    CFAA_ASSERT(set.rows() >= 1 && set.cols() == attributes);
    CFAA_ASSERT(set.stride[1] == 1 || attributes == 1);
  }
}

}  // namespace

template <class T>
Slim slim(Context& context, std::span<const MatrixView<const T>> sets, const SlimOptions& options) {
  check_options(options);
  CFAA_ASSERT(!sets.empty());
  const int64_t s = static_cast<int64_t>(sets.size()), d = sets[0].cols();
  check_sets(sets, d);
  Arena& arena = context.scratch();

  Slim result;
  result.b = arena.take<double, 3>({s, d, d});
  result.theta = arena.take<double, 3>({s, d, d});
  if (options.iterations > 1) result.xi = arena.take<double, 3>({s, d, d});
  result.gamma = arena.take<double, 2>({s, d});
  result.nu = arena.take<double, 1>({s});
  result.objective = arena.take<double, 2>({s, options.iterations});
  result.rounds = arena.take<int32_t, 1>({s});

  const Arena::Scope scope(arena);
  CFAA_DISPATCH(context, slim<T>)(context, sets, options, result);
  return result;
}

template <class T>
void slim_backward(Context& context, std::span<const MatrixView<const T>> sets,
                   const SlimOptions& options, const Slim& forward,
                   View<const double, 3> b_gradient, double scale,
                   std::span<const MatrixView<T>> gradients) {
  check_sets(sets, forward.b.cols());
  check_sets(gradients, forward.b.cols());
  CFAA_ASSERT(b_gradient.shape == forward.b.shape && b_gradient.contiguous());
  CFAA_ASSERT(gradients.size() == sets.size());

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, slim_backward<T>)
  (context, sets, options, forward, b_gradient, scale, gradients);
}

CFAA_FOR_FLOAT_AND_DOUBLE(slim);
CFAA_FOR_FLOAT_AND_DOUBLE(slim_backward);

}  // namespace cfaa
