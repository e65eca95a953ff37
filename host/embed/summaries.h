#pragma once

// Extractive summaries of users and items, as ESCOFILT reads them: of the sentences of all training
// reviews of an entity those that host/embed/sentence_selection.h chooses. What is kept is, for
// every training review and either side, the sum and the number of its chosen sentences, so that a
// review can be taken out of a summary exactly:
//
//   user_summary_sums.npy, item_summary_sums.npy       (training interactions, width)
//   user_summary_counts.npy, item_summary_counts.npy   (training interactions) int32

#include <cstdint>
#include <span>
#include <vector>

#include "host/core/parallel.h"
#include "host/core/view.h"

namespace cfaa {

// Which sentences are in the summary of their entity; not 0: they are. entity_of_row and counts
// (rows): whose a review is, and how many sentences it has; sentences (sum of counts, width) of row
// after row. Streams of random numbers are told apart by `seed` and the entity.
std::vector<char> summarize(ThreadPool& threads, std::span<const int32_t> entity_of_row,
                            int64_t entities, std::span<const int32_t> counts,
                            MatrixView<const float> sentences, uint64_t seed);

}  // namespace cfaa
