#pragma once

// The inputs of one training step, as flat arrays in one piece of memory: the host fills a batch,
// one copy takes it to the device, and a replayed CUDA graph finds it at the same addresses.
//
// Each domain has rows = N + N n pairs (user, item): the N interactions of the batch, then the n
// negatives of the first, of the second, and so on. The alignment losses read the first N rows.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "host/core/view.h"
#include "host/ops/embedding_bag.h"
#include "host/ops/review_input.h"
#include "host/ops/step_state.h"
#include "host/ops/text_convolution.h"

namespace cfaa {

// Indices of arrays over the domains and over the sides of a pair.
inline constexpr int kSource = 0, kTarget = 1;
inline constexpr int kUser = 0, kItem = 1;

template <class T>
using PerDomain = std::array<T, 2>;
template <class T>
using PerSide = std::array<T, 2>;

// What a domain's reviews need where their words are read; no texts: they are not.
struct TextShape {
  int64_t texts = 0;                // training reviews
  int64_t words = 0;                // in all of them
  int64_t longest = 0;              // words of one
  int64_t vocabulary = 0;           // distinct words
  int64_t entries = 0;              // reviews of one row, at most; 0: reviews are not told apart
  int64_t row_words = 0;            // distinct words of one row, at most; 0: they are not listed
  PerSide<int64_t> counterparts{};  // rows of the tables for whom a review is about; 0: none

  // Room for `rows` rows: distinct reviews, and their words.
  int64_t most_texts(int64_t rows) const { return std::min(rows * entries, texts); }
  int64_t most_words(int64_t rows) const { return std::min(most_texts(rows) * longest, words); }
};

// What decides the sizes. A part of the towers' input that is not used has table rows 0.
struct BatchShape {
  int64_t n = 0;                               // N
  PerDomain<bool> used = {true, true};         // a domain that is not trained on has no rows
  PerDomain<int64_t> negatives{};              // n of each domain
  PerDomain<bool> offsets{};                   // whether scores have an offset
  int64_t history_entries = 0;                 // of one row, at most
  int64_t review_dim = 0;                      // 0: no reviews
  int64_t losses = 0;                          // beside L_C
  int64_t groups = 1;                          // of parameters
  PerDomain<PerSide<int64_t>> id_rows{};       // of the id tables
  PerDomain<PerSide<int64_t>> history_rows{};  // of the history tables
  PerDomain<TextShape> text;

  int64_t rows(std::size_t domain) const { return used[domain] ? n * (1 + negatives[domain]) : 0; }
  int64_t all_rows() const { return rows(kSource) + rows(kTarget); }
};

// Bags of a table's rows, both ways round; see host/ops/embedding_bag.h.
template <class T>
struct EdgeLists {
  VectorView<int32_t> offset, index;
  VectorView<T> weight;
  VectorView<int32_t> touched_count, touched_row, touched_offset, touched_bag;
  VectorView<T> touched_weight;

  Bags<T> bags() const { return {offset, index, weight}; }
  TouchedRows<T> touched() const {
    return {touched_count, touched_row, touched_offset, touched_bag, touched_weight};
  }
};

// The distinct reviews of a side's rows: E of them, then empty ones.
template <class T>
struct TextBatch {
  VectorView<int32_t> offset, word;  // host/ops/text_convolution.h
  VectorView<int32_t> word_offset, word_text, word_place;
  EdgeLists<T> reviews;      // bags of reviews, one for each row
  EdgeLists<T> counterpart;  // one for each review: whom it is about, or by
  EdgeLists<T> words;        // bags of distinct words, ascending, one for each row

  TextLists texts() const { return {offset, word}; }
  WordOccurrences occurrences() const { return {word_offset, word_text, word_place}; }
};

template <class T>
struct SideBatch {
  EdgeLists<T> id, history;
  TextBatch<T> text;
  ReviewedRows review;  // null where no review vectors are read
  // What entities of `review` are rows of, where training never saw them: (entities, review_dim)
  // sums over their sentences, in device memory. Null: training's.
  MatrixView<const float> later_reviews{};
};

template <class T>
struct DomainBatch {
  PerSide<SideBatch<T>> side;
  VectorView<T> label, weight;  // (rows)
  VectorView<T> offset;         // (rows) added to the scores in the losses; null: none
};

template <class T>
struct Batch {
  StepState* state = nullptr;      // (groups) the model's, and those of losses with layers
  VectorView<double> loss_weight;  // (losses) as LossOptions::used() orders them
  PerDomain<DomainBatch<T>> domain;
};

template <class T>
class BatchLayout {
 public:
  explicit BatchLayout(const BatchShape& shape);

  const BatchShape& shape() const { return shape_; }
  std::size_t bytes() const { return bytes_; }

  // The arrays of a batch whose memory begins at `memory`, aligned to 256 bytes.
  Batch<T> at(void* memory) const;

 private:
  BatchShape shape_;
  std::size_t bytes_ = 0;
};

}  // namespace cfaa
