#pragma once

// Vectors that were made before: the reviews of other prepared directories, found by their texts.
// What a directory holds is used where its embed.json says that the same model and settings made
// it, so that a review's sum has the bits that encoding it again would give.

#include <filesystem>
#include <vector>

#include "host/embed/review_sums.h"
#include "host/embed/window.h"

namespace cfaa {

// The prepared directories beside this one that hold embeddings, in order of their names.
std::vector<std::filesystem::path> embedded_beside(const std::filesystem::path& data);

class KnownReviews {
 public:
  // `settings`: those of embed.json that are not the data's own. Directories that do not fit, or do
  // not read, are passed over.
  KnownReviews(const std::vector<std::filesystem::path>& directories, const Fields& settings);

  // Adds the sum of the text's sentences' vectors to `sum`, where it is known and of as many
  // sentences.
  bool add_sum(const TextHash& text, int32_t sentences, double* sum) const;

  bool empty() const { return reviews_.empty(); }

 private:
  struct Review {
    TextHash text;
    uint32_t domain = 0;
    int64_t row = 0;
  };
  void add(const std::filesystem::path& directory, const char* name, const Fields& settings);

  std::vector<ReviewSums> domains_;
  std::vector<Review> reviews_;  // by text
};

}  // namespace cfaa
