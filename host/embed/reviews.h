#pragma once

// The training reviews of a prepared domain to the vectors that training needs, beside its other
// files (docs/data_format.md):
//
//   review_sums.npy     (training interactions, width) sum of the sentences' vectors
//   review_counts.npy   (training interactions) int32, how many sentences
//   user_reviews.npy    (users, width), item_reviews.npy (items, width): mean over all sentences of
//                       the user's or item's training reviews; zero where there is none
//   empty_reviews.txt   rows of reviews without a token, where there are any
//   embed.json          what they were made from and with; written last
//
// Held-out text is never opened. Sums are made in double in the order of the sentences and rounded
// once; the means are made from the rounded sums in the order of the rows.

#include "host/data/dataset.h"
#include "host/embed/corpus.h"

namespace cfaa {

struct ReviewsRequest {
  Language language = Language::kEnglish;
  bool split = true;
  DType dtype = DType::f32;
  int64_t window_sentences = 0;  // 0: default_window_sentences
  int threads = 0;
  bool fresh = false;  // replace what is there
};

// Error where other embeddings are there already, or an interrupted run had other settings.
EmbedReport embed_reviews(const Domain& domain, const ReviewsRequest& request,
                          EmbeddingModel& model);

}  // namespace cfaa
