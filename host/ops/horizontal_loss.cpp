#include "host/ops/horizontal_loss.h"

#include <array>

#include "host/core/error.h"
#include "host/ops/sum.h"

namespace cfaa {
namespace {

// The pairs' sources, then their targets.
template <class View, class Pair>
std::array<View, 2 * kMaxPairs> as_sets(std::span<const Pair> pairs) {
  std::array<View, 2 * kMaxPairs> sets;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    sets[p] = pairs[p].source;
    sets[pairs.size() + p] = pairs[p].target;
  }
  return sets;
}

}  // namespace

template <class T>
HorizontalLoss<T> horizontal_loss(Context& context, EmbeddingPairs<T> pairs,
                                  const AlignmentOptions& options) {
  check_pairs(pairs);
  if (pairs[0].source.cols() < 2) {
    throw Error(
        "the horizontal loss needs at least 2 attributes, and these embeddings have 1; compare "
        "them by the vertical loss alone");
  }
  const auto sets = as_sets<MatrixView<const T>>(pairs);

  HorizontalLoss<T> result;
  result.loss = context.scratch().template take<T, 1>({1});
  result.slim = slim<T>(context, {sets.data(), 2 * pairs.size()}, options.slim);
  result.graph =
      graph_wasserstein<T>(context, result.slim.b, options.graph_floor, options.slim.solver);
  sum<T>(context, result.graph.distance, 1.0, result.loss);
  return result;
}

template <class T>
void horizontal_loss_backward(Context& context, EmbeddingPairs<T> pairs,
                              const AlignmentOptions& options, const HorizontalLoss<T>& forward,
                              double scale, GradientPairs<T> gradients) {
  check_pairs(pairs);
  check_gradients(pairs, gradients);
  const auto sets = as_sets<MatrixView<const T>>(pairs);
  const auto gradient_sets = as_sets<MatrixView<T>>(gradients);
  slim_backward<T>(context, {sets.data(), 2 * pairs.size()}, options.slim, forward.slim,
                   forward.graph.b_gradient, scale, {gradient_sets.data(), 2 * pairs.size()});
}

CFAA_FOR_FLOAT_AND_DOUBLE(horizontal_loss);
CFAA_FOR_FLOAT_AND_DOUBLE(horizontal_loss_backward);

}  // namespace cfaa
