#pragma once

// What the alignment losses compare: the embeddings of one kind (users, or items) in both domains.
// A training step has two pairs, `cfaa_gpu discrepancy` one. N may differ between the domains and
// between the pairs; D may not.

#include <span>

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa {

template <class T>
struct EmbeddingPair {
  MatrixView<const T> source;  // (N_S, D)
  MatrixView<const T> target;  // (N_T, D)
};

// Where the gradients go; shaped like the embeddings. Backward passes add to what is there.
template <class T>
struct GradientPair {
  MatrixView<T> source;  // (N_S, D)
  MatrixView<T> target;  // (N_T, D)
};

template <class T>
using EmbeddingPairs = std::span<const EmbeddingPair<T>>;
template <class T>
using GradientPairs = std::span<const GradientPair<T>>;

inline constexpr int kMaxPairs = 4;

// Throws Error unless there are 1 to kMaxPairs pairs, all of the same D >= 1 and with N >= 1, and
// the columns of every row are adjacent (stride 1; rows may be padded).
template <class T>
void check_pairs(EmbeddingPairs<T> pairs);

// Throws Error unless `gradients` has the shapes of `pairs`.
template <class T>
void check_gradients(EmbeddingPairs<T> pairs, GradientPairs<T> gradients);

}  // namespace cfaa
