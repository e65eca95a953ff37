#pragma once

// The training reviews of a prepared domain to the vectors that training needs, beside its other
// files (docs/data_format.md):
//
//   review_sums.npy     (training interactions, width) sum of the sentences' vectors
//   review_counts.npy   (training interactions) int32, how many sentences
//   user_reviews.npy    (users, width), item_reviews.npy (items, width): mean over all sentences of
//                       the user's or item's training reviews; zero where there is none
//   user_summary_sums.npy, ...   with options.summaries: host/embed/summaries.h
//   empty_reviews.txt   rows of reviews without a token, where there are any
//   embed.json          what they were made from and with; written last
//
// Held-out text is never opened. Sums are made in double in the order of the sentences and rounded
// once; the means are made from the rounded sums in the order of the rows.

#include <atomic>
#include <filesystem>
#include <optional>
#include <vector>

#include "host/data/dataset.h"
#include "host/embed/pipeline.h"
#include "host/embed/shards/shard.h"

namespace cfaa {

struct ReviewsRequest {
  EmbedOptions options;
  // Prepared directories whose vectors are taken where they have the same text.
  std::vector<std::filesystem::path> reuse;
  int threads = 0;
  bool fresh = false;  // forget an interrupted run, replace embeddings that are there
  bool force = false;  // replace files that embed did not write
  const std::atomic<bool>* stop = nullptr;
  std::optional<Shard> shard;  // only this part of the reviews, by the bytes of their texts
};

// Error where other embeddings are there already, or an interrupted run had other settings. A shard
// goes into embed.shards/.
EmbedReport embed_reviews(const Domain& domain, const ReviewsRequest& request,
                          EmbeddingModel& model);

// Puts the shards of embed.shards/ together: the files that one run over all reviews writes. Of the
// request `threads`, `fresh` and `force` count. Error, naming them, for shards that are missing,
// damaged, or made of other texts than there are now.
EmbedReport join_reviews(const Domain& domain, const ReviewsRequest& request);

// Encodes the first `count` reviews and keeps nothing: how fast it is, and how much there is to do.
EmbedReport try_reviews(const Domain& domain, const ReviewsRequest& request, int64_t count,
                        EmbeddingModel& model);

}  // namespace cfaa
