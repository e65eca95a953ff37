#pragma once

// The horizontal loss: the Gaussian Wasserstein distance between the attribution graphs of both
// domains, summed over the pairs (users, items):  L_A = sum_pairs d_W(pair).
//
// Phi and, where relative, nu are held fixed in the backward. A graph needs two nodes: D = 1 is
// refused.

#include "host/ops/embedding_pair.h"
#include "host/ops/graph_wasserstein.h"
#include "host/ops/slim.h"

namespace cfaa {

// What the backward needs, and what people want to see. Lives in the arena.
template <class T>
struct HorizontalLoss {
  VectorView<T> loss;  // (1)  L_A
  Slim slim;           // sets 0 .. P-1 are the sources, P .. 2P-1 the targets
  GraphWasserstein<T> graph;
};

template <class T>
HorizontalLoss<T> horizontal_loss(Context& context, EmbeddingPairs<T> pairs,
                                  const AlignmentOptions& options);

// Adds `scale` * dL_A/dZ to `gradients`.
template <class T>
void horizontal_loss_backward(Context& context, EmbeddingPairs<T> pairs,
                              const AlignmentOptions& options, const HorizontalLoss<T>& forward,
                              double scale, GradientPairs<T> gradients);

}  // namespace cfaa
