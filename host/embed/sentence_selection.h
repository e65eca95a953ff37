#pragma once

// The sentences that stand for a user or an item (ESCOFILT, after Miller's extractive summaries):
// K-means over the vectors of all its sentences, K = max(floor(share n), 1), then for each centroid
// the nearest sentence that no centroid before took, and always the first sentence.
//
// Centroids start by k-means++ with Philox numbers of their own for each entity, so that the choice
// depends on the vectors, the seed and the entity's number alone.

#include <cstdint>
#include <vector>

#include "host/core/view.h"

namespace cfaa {

struct SelectionOptions {
  double share = 0.4;
  int64_t iterations = 100;  // at most; fewer where no sentence changes its cluster
  uint64_t seed = 0;
};

// vectors (n, width), rows may be padded. The chosen rows, ascending: between 1 and K + 1 of them;
// none where n is 0.
std::vector<int32_t> select_sentences(MatrixView<const float> vectors,
                                      const SelectionOptions& options, uint64_t entity);

}  // namespace cfaa
