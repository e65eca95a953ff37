#pragma once

// A loss that pulls the embeddings of both domains together. The model knows no more of one than
// this: other losses fit in the same place.

#include <memory>
#include <vector>

#include "host/core/context.h"
#include "host/ops/alignment_options.h"
#include "host/ops/embedding_pair.h"

namespace cfaa {

template <class T>
class AlignmentLoss {
 public:
  virtual ~AlignmentLoss() = default;

  virtual const char* name() const = 0;  // "vertical"

  // Writes the loss (1) and adds its gradient to `gradients`, in one go. Scratch comes from the
  // arena and is given back.
  virtual void apply(Context& context, EmbeddingPairs<T> pairs, GradientPairs<T> gradients,
                     VectorView<T> loss) = 0;
};

// L_O of the paper (host/ops/vertical_loss.h) and L_A (host/ops/horizontal_loss.h).
template <class T>
std::unique_ptr<AlignmentLoss<T>> make_vertical(const AlignmentOptions& options);
template <class T>
std::unique_ptr<AlignmentLoss<T>> make_horizontal(const AlignmentOptions& options);

}  // namespace cfaa
