#include "host/ops/graph_wasserstein.h"

#include "host/core/error.h"

namespace cfaa {

template <class T>
GraphWasserstein<T> graph_wasserstein(Context& context, View<const double, 3> b, double graph_floor,
                                      Solver solver) {
  const int64_t sets = b.shape[0], d = b.shape[1];
  if (d < 2) {
    throw Error("the horizontal loss needs at least 2 attributes, and these embeddings have " +
                std::to_string(d) + "; compare them by the vertical loss alone");
  }
  if (!(graph_floor >= 0)) throw Error("graph_floor must be at least 0");
  CFAA_ASSERT(sets >= 2 && sets % 2 == 0 && b.shape[2] == d && b.contiguous());
  Arena& arena = context.scratch();

  GraphWasserstein<T> result;
  result.distance = arena.take<T, 1>({sets / 2});
  result.b_gradient = arena.take<double, 3>({sets, d, d});
  result.laplacian = arena.take<T, 3>({sets, d, d});

  const Arena::Scope scope(arena);
  CFAA_DISPATCH(context, graph_wasserstein<T>)(context, b, graph_floor, solver, result);
  return result;
}

CFAA_FOR_FLOAT_AND_DOUBLE(graph_wasserstein);

}  // namespace cfaa
