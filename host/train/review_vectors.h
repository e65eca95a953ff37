#pragma once

// H: the mean of the sentence vectors of a user's or an item's training reviews, with one
// interaction's own review taken out. `embed` wrote the sum and the number of sentences of every
// training interaction; the sums stay mapped, the totals of users and items are in memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "host/core/dtype.h"
#include "host/data/dataset.h"
#include "host/embed/review_embeddings.h"
#include "host/model/batch.h"
#include "host/model/model_options.h"

namespace cfaa {

// The sums and counts of a domain's training interactions, wherever they lie.
struct ReviewSums {
  DType dtype = DType::f32;        // of the sums: float32 or float16
  const std::byte* sum = nullptr;  // (training interactions, width)
  const int32_t* count = nullptr;  // (training interactions)
  int64_t width = 0;
  std::shared_ptr<const void> owner;           // keeps both alive
  std::function<void()> forget_pages = [] {};  // of a mapped file that was read from end to end
};

// What `embed` wrote; it stays mapped.
ReviewSums review_sums(ReviewEmbeddings embeddings);

class ReviewVectors {
 public:
  ReviewVectors(const Domain& domain, ReviewSums sums, ReviewScale scale);

  int64_t dim() const { return dim_; }

  // Writes dim() + 1 floats: the scaled vector of an entity without the interaction `excluded`
  // (-1: with all), and 0; or zeros and 1 where no sentence is left.
  void write(std::size_t side, int64_t entity, int64_t excluded, float* out) const;

  // Entities without a sentence in training.
  int64_t absent(std::size_t side) const { return absent_[side]; }

 private:
  int32_t sentences(int64_t row) const { return sums_.count[row]; }
  void read_sum(int64_t row, float* out) const;
  void add_totals(const Domain& domain);
  void find_moments(std::size_t side);

  ReviewSums sums_;
  ReviewScale scale_;
  int64_t dim_;
  PerSide<std::vector<float>> total_;          // (entities, dim)
  PerSide<std::vector<int64_t>> sentences_;    // (entities)
  PerSide<std::vector<float>> mean_, factor_;  // (dim): subtracted, then multiplied
  PerSide<int64_t> absent_{};
};

}  // namespace cfaa
