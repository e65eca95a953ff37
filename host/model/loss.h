#pragma once

// A loss on the embeddings of both domains, beside L_C. The model keeps a list of them by name and
// knows no more of one than this: another loss is another entry.

#include <functional>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/model/loss_options.h"
#include "host/ops/alignment_options.h"
#include "host/ops/embedding_pair.h"

namespace cfaa {

// What a loss reads and writes in one step.
template <class T>
struct LossInput {
  EmbeddingPairs<T> pairs;     // users, items: (N, D) of the source and of the target
  GradientPairs<T> gradients;  // of the same; added to, without the loss's weight
  VectorView<T> value;         // (1), written
};

template <class T>
struct Loss {
  std::string name;  // "vertical"
  std::function<void(Context&, const LossInput<T>&)> apply;
};

// The losses that `options` uses, in its order: L_O of the paper (host/ops/vertical_loss.h) and L_A
// (host/ops/horizontal_loss.h).
template <class T>
std::vector<Loss<T>> make_losses(const LossOptions& options, const AlignmentOptions& alignment);

}  // namespace cfaa
