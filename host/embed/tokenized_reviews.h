#pragma once

// The training reviews of a domain as words: the tokens of a Hugging Face model's tokenizer, with
// the rows of that model's input embeddings as their vectors. What encoders that read words are
// given; both domains of a data set have the same vectors for the same word.

#include <cstdint>
#include <string>
#include <vector>

#include "host/core/view.h"
#include "host/data/dataset.h"

namespace cfaa {

struct TokenizedReviews {
  std::vector<int64_t> offset;  // (training interactions + 1)
  std::vector<int32_t> word;    // rows of `vectors`; review r is word[offset[r]] .. [offset[r + 1]]
  int64_t width = 0;
  std::vector<float> vectors;  // (distinct words, width), at unit RMS over the whole vocabulary

  int64_t reviews() const { return static_cast<int64_t>(offset.size()) - 1; }
  int64_t length(int64_t review) const {
    return offset[static_cast<std::size_t>(review) + 1] - offset[static_cast<std::size_t>(review)];
  }
  int64_t vocabulary() const { return static_cast<int64_t>(vectors.size()) / width; }
  MatrixView<const float> vectors_view() const { return {vectors.data(), {vocabulary(), width}}; }
};

// The first `most` words of every training review. Held-out text is never opened. Error where
// `model` is no model's folder, or no review has a word.
TokenizedReviews tokenize_reviews(const Domain& domain, const std::string& model, int64_t most);

// What decides about the words and their vectors: a hash of tokenizer and weights.
std::string word_model_hash(const std::string& model);

}  // namespace cfaa
