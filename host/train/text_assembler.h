#pragma once

// The words of a side's rows for a batch: which reviews each row reads, and the words of every
// distinct one of them, both ways round (host/ops/text_convolution.h, host/ops/bag_max.h). A row
// never reads the review of the interaction that it is to predict.

#include <cstdint>
#include <span>
#include <vector>

#include "host/data/dataset.h"
#include "host/embed/tokenized_reviews.h"
#include "host/model/batch.h"
#include "host/train/touched_rows.h"

namespace cfaa {

// A row of one side: the entity, and the interaction left out of what it is described by.
struct BatchEntry {
  int32_t entity;
  int32_t excluded;  // -1: none
};

class TextAssembler {
 public:
  // `most` reviews of an entity are read, a sample of them where it has more; 0: all.
  TextAssembler(const Domain& domain, const TokenizedReviews& texts, std::size_t side,
                int64_t most);

  // Reviews of one row, at most.
  int64_t entries() const { return entries_; }

  // The bags of words of `batch`, in host memory: the first `most` distinct ones of each row.
  template <class T>
  void fill_row_words(std::span<const BatchEntry> rows, int64_t most, const TextBatch<T>& batch);

  // The rest of `batch`; `seed` and `stream` choose the samples.
  template <class T>
  void fill(std::span<const BatchEntry> rows, uint64_t seed, uint64_t stream,
            const TextBatch<T>& batch);

 private:
  // The place of a review among those of the batch; the next one where it is new.
  int32_t place_of(int32_t review);
  template <class T>
  void fill_words(const TextBatch<T>& batch);
  template <class T>
  void fill_counterparts(const TextBatch<T>& batch);

  const TokenizedReviews& texts_;
  const std::vector<int32_t>& counterpart_;  // of a review: the other side's entity
  std::vector<int64_t> offset_;              // (entities + 1)
  std::vector<int32_t> review_;              // those with words, by entity
  int64_t entries_ = 0;
  TouchedRowLister review_rows_, counterpart_rows_, word_rows_;
  std::vector<int64_t> seen_;       // by review: the call that placed it last
  std::vector<int32_t> place_;      // and where
  std::vector<int32_t> placed_;     // the reviews of the batch in their order
  std::vector<int64_t> word_seen_;  // by word: the row that listed it last
  int64_t now_ = 0, row_now_ = 0;
};

}  // namespace cfaa
