#pragma once

// What training reads of the reviews: the sum of the sentences' vectors and the number of sentences
// of every training interaction. The mean of row r's review is sum[r] / count[r]; that of a user
// without row r is made from the sums and counts of the user's other rows.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "host/core/dtype.h"
#include "host/core/fields.h"
#include "host/data/dataset.h"

namespace cfaa {

// Wherever they lie; rows as in the train file.
struct ReviewSums {
  DType dtype = DType::f32;        // of the sums: float32 or float16
  const std::byte* sum = nullptr;  // (training interactions, width)
  const int32_t* count = nullptr;  // (training interactions)
  int64_t width = 0;
  std::shared_ptr<const void> owner;           // keeps both alive
  std::function<void()> forget_pages = [] {};  // of a mapped file that was read from end to end
  std::string origin = "the review sums";      // what to call them in messages
};

// Of which sentences: all, or those in the summaries of the users, or of the items, who have them
// (host/embed/summaries.h).
enum class SummedSentences { all, user_summary, item_summary };

// What `cfaa_gpu embed` left beside a prepared domain; the arrays stay mapped. Error where there is
// nothing, where it was made from other data (the domain was prepared again, or its text edited),
// where a file does not fit the others, or where summaries were not kept.
ReviewSums load_review_sums(const Domain& domain, SummedSentences which = SummedSentences::all);

// Of both domains, source first; Error where they were made with different models or settings.
std::pair<ReviewSums, ReviewSums> load_review_sums(const Dataset& data);

// The settings that name the domain's data: "dataset" (ids, splits, rows) and "text".
Fields review_identity(const Domain& domain);

// embed.json of a domain.
struct EmbedDescription {
  Fields settings, counts;
  int64_t width = 0;
  bool summaries = false;  // are there too
};
// Error where it is absent or not what embed writes.
EmbedDescription read_embed_description(const Domain& domain);

}  // namespace cfaa
