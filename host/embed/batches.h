#pragma once

// Encodes the sentences of a window: those with the same tokens once, in batches of one padded
// length, as many rows as the engine asks for, with all of its slots busy.

#include <cstdint>
#include <functional>
#include <vector>

#include "host/embed/window.h"
#include "host/encoder/network.h"

namespace cfaa {

class BatchEncoder {
 public:
  // `pad_id` fills the batches' rows; the engine masks it.
  BatchEncoder(NetworkEngine& engine, int32_t pad_id);

  // Encodes sentences [first, last) of the window; vector() then has them. `done(tokens)` is called
  // after each batch with its real tokens. Error where the network gives NaN or infinity.
  void encode(const SentenceWindow& window, int64_t first, int64_t last,
              const std::function<void(int64_t tokens)>& done);

  // (width) of a sentence of the last encode().
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
  void find_unique(const SentenceWindow& window, int64_t first, int64_t last);
  void start(const SentenceWindow& window, const Batch& batch, int slot);
  void finish(const SentenceWindow& window, const Batch& batch, int slot,
              const std::function<void(int64_t)>& done);

  NetworkEngine& engine_;
  int32_t pad_id_;
  int64_t first_ = 0;
  std::vector<int64_t> row_;      // of each sentence: its row among the unique
  std::vector<int64_t> unique_;   // the first sentence with each row's tokens
  std::vector<int64_t> order_;    // rows, long ones first
  std::vector<int64_t> buckets_;  // hash table of rows, -1: free
  std::vector<float> vectors_;    // (unique, width)
  std::vector<int32_t> ids_, lengths_;
  int64_t encoded_sentences_ = 0, encoded_tokens_ = 0, padded_tokens_ = 0;
};

}  // namespace cfaa
