#pragma once

// The vertical loss: per attribute, the transport distance between the typical samples of both
// domains, averaged over the attributes and summed over the pairs (users, items):
//
//   L_O = (1/D) sum_pairs sum_q d(pair, q)
//
// Psi, the plans, alpha_q, epsilon_q and the start are held fixed in the backward.

#include "host/ops/coupling.h"
#include "host/ops/typical_samples.h"

namespace cfaa {

// What the backward needs, and what people want to see. Lives in the arena.
template <class T>
struct VerticalLoss {
  VectorView<T> loss;  // (1)  L_O
  TypicalSamples<T> typical;
  Coupling<T> coupling;  // problem q of pair p is number p * D + q
  View<T, 3> plan;       // (P D, K, K), or empty
};

template <class T>
VerticalLoss<T> vertical_loss(Context& context, EmbeddingPairs<T> pairs,
                              const AlignmentOptions& options, bool keep_plans = false);

// Adds `scale` * dL_O/dZ to `gradients`.
template <class T>
void vertical_loss_backward(Context& context, EmbeddingPairs<T> pairs,
                            const VerticalLoss<T>& forward, double scale,
                            GradientPairs<T> gradients);

}  // namespace cfaa
