#pragma once

// Encodes the sentences of a window: those with the same tokens once, in batches of one padded
// length, as many rows as the engine asks for, with all of its slots busy.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/embed/window.h"
#include "host/encoder/network.h"

namespace cfaa {

class BatchEncoder {
 public:
  // `pad_id` fills the batches' rows; the engine masks it.
  BatchEncoder(NetworkEngine& engine, int32_t pad_id);

  // Takes up sentences [first, last) of the window but for those of documents that are marked in
  // `skipped` (of each document, or empty), whose vectors nobody will ask for.
  void begin(const SentenceWindow& window, int64_t first, int64_t last,
             const std::vector<char>& skipped = {});
  // Rows are the different sentences, long ones first. Those that an earlier run encoded need not
  // be encoded again: `vectors` (count, width) are the first ones. False, and nothing is taken,
  // where that run's key() of them was another.
  bool restore(const float* vectors, int64_t count, const std::string& key);
  // Encodes the rest; vector() then has them all. `done(tokens)` is called after each batch with
  // its real tokens; where it says false no other batch is begun, and encode() says false. Error
  // where the network gives NaN or infinity.
  bool encode(const std::function<bool(int64_t tokens)>& done);

  // What there is so far: the vectors of rows [from, rows_done()) in order, and a hash of the
  // tokens and vectors of the first `count` rows.
  int64_t rows_done() const { return static_cast<int64_t>(done_); }
  void append_rows(int64_t from, std::vector<float>& out) const;
  std::string key(int64_t count) const;

  // (width) of a sentence.
  const float* vector(int64_t sentence) const {
    return vectors_.data() + row_[static_cast<std::size_t>(sentence - first_)] * engine_.width();
  }

  // Since construction.
  int64_t encoded_sentences() const { return encoded_sentences_; }
  int64_t encoded_tokens() const { return encoded_tokens_; }
  int64_t padded_tokens() const { return padded_tokens_; }

 private:
  struct Batch {
    std::size_t begin = 0, end = 0;  // in order_
    int64_t padded = 0;
  };
  void find_unique(int64_t first, int64_t last, const std::vector<char>& skipped);
  void start(const Batch& batch, int slot);
  int64_t finish(const Batch& batch, int slot);  // its real tokens
  std::vector<Batch> batches() const;
  int64_t length(int64_t row) const {
    return window_->length(unique_[static_cast<std::size_t>(row)]);
  }

  NetworkEngine& engine_;
  int32_t pad_id_;
  const SentenceWindow* window_ = nullptr;
  int64_t first_ = 0;
  std::size_t done_ = 0;          // of order_
  std::vector<int64_t> row_;      // of each sentence: its row among the unique
  std::vector<int64_t> unique_;   // the first sentence with each row's tokens
  std::vector<int64_t> order_;    // rows, long ones first
  std::vector<int64_t> buckets_;  // hash table of rows, -1: free
  std::vector<float> vectors_;    // (unique, width)
  std::vector<int32_t> ids_, lengths_;
  int64_t encoded_sentences_ = 0, encoded_tokens_ = 0, padded_tokens_ = 0;
};

}  // namespace cfaa
