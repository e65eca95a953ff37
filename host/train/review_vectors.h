#pragma once

// What H is made from: the mean of the sentence vectors of a user's or an item's training reviews,
// with one interaction's own review taken out. `embed` wrote the sum and the number of sentences of
// every training interaction; the sums stay mapped, the totals of users and items are in memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/data/dataset.h"
#include "host/embed/review_sums.h"
#include "host/model/batch.h"
#include "host/model/model_options.h"

namespace cfaa {

class ReviewVectors {
 public:
  // Error for a sum that is not finite and for a number of sentences that no review has.
  ReviewVectors(const Domain& domain, ReviewSums sums, ReviewScale scale)
      : ReviewVectors(domain, {sums, sums}, scale) {}
  // The same of sums that are not alike for users and items: those of their summaries.
  ReviewVectors(const Domain& domain, PerSide<ReviewSums> sums, ReviewScale scale);

  int64_t dim() const { return dim_; }

  // What host/ops/review_input.h makes vectors from: the mapped sums, and what is in memory here.
  ReviewArrays arrays(std::size_t side) const;
  // 1 over the sentences of an entity without the interaction `excluded` (-1: with all); 0 where
  // none is left.
  float share(std::size_t side, int64_t entity, int64_t excluded) const;

  // Entities without a sentence in training.
  int64_t absent(std::size_t side) const { return absent_[side]; }

 private:
  int32_t sentences(std::size_t side, int64_t row) const { return sums_[side].count[row]; }
  void read_sum(std::size_t side, int64_t row, float* out) const;
  void check_row(std::size_t side, int64_t row, const std::vector<float>& sum) const;
  void add_totals(const Domain& domain, std::size_t side);
  void find_moments(std::size_t side);

  PerSide<ReviewSums> sums_;
  ReviewScale scale_;
  int64_t dim_, reviews_;
  PerSide<std::vector<float>> total_;          // (entities, dim)
  PerSide<std::vector<int64_t>> sentences_;    // (entities)
  PerSide<std::vector<float>> mean_, factor_;  // (dim): subtracted, then multiplied
  PerSide<int64_t> absent_{};
};

}  // namespace cfaa
