#include "host/embed/batches.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "host/core/error.h"

namespace cfaa {

BatchEncoder::BatchEncoder(NetworkEngine& engine, int32_t pad_id)
    : engine_(engine), pad_id_(pad_id) {}

void BatchEncoder::find_unique(const SentenceWindow& window, int64_t first, int64_t last) {
  const auto count = static_cast<std::size_t>(last - first);
  const std::size_t mask = std::bit_ceil(2 * count + 1) - 1;
  buckets_.assign(mask + 1, -1);
  row_.resize(count);
  unique_.clear();
  for (int64_t s = first; s < last; ++s) {
    const int64_t length = window.length(s);
    const std::size_t bytes = static_cast<std::size_t>(length) * sizeof(int32_t);
    const int32_t* tokens = window.tokens_of(s);
    std::size_t at = XXH3_64bits(tokens, bytes) & mask;
    for (;; at = (at + 1) & mask) {
      const int64_t row = buckets_[at];
      if (row < 0) {
        buckets_[at] = static_cast<int64_t>(unique_.size());
        unique_.push_back(s);
        break;
      }
      const int64_t other = unique_[static_cast<std::size_t>(row)];
      if (window.length(other) == length &&
          std::memcmp(window.tokens_of(other), tokens, bytes) == 0) {
        break;
      }
    }
    row_[static_cast<std::size_t>(s - first)] = buckets_[at];
  }
}

void BatchEncoder::start(const SentenceWindow& window, const Batch& batch, int slot) {
  const auto rows = static_cast<int64_t>(batch.end - batch.begin);
  ids_.assign(static_cast<std::size_t>(rows * batch.padded), pad_id_);
  lengths_.resize(static_cast<std::size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t sentence =
        unique_[static_cast<std::size_t>(order_[batch.begin + static_cast<std::size_t>(r)])];
    const int64_t length = window.length(sentence);
    std::copy_n(window.tokens_of(sentence), length, ids_.data() + r * batch.padded);
    lengths_[static_cast<std::size_t>(r)] = static_cast<int32_t>(length);
  }
  engine_.start(slot, {{ids_.data(), {rows, batch.padded}}, {lengths_.data(), {rows}}});
}

void BatchEncoder::finish(const SentenceWindow& window, const Batch& batch, int slot,
                          const std::function<void(int64_t)>& done) {
  const int64_t width = engine_.width();
  const MatrixView<const float> out = engine_.finish(slot);
  CFAA_ASSERT(out.rows() == static_cast<int64_t>(batch.end - batch.begin) && out.cols() == width);
  int64_t tokens = 0;
  for (int64_t r = 0; r < out.rows(); ++r) {
    const int64_t row = order_[batch.begin + static_cast<std::size_t>(r)];
    float* to = vectors_.data() + row * width;
    std::copy_n(&out(r, 0), width, to);
    float zero = 0;  // NaN once an element is NaN or infinite
    for (int64_t i = 0; i < width; ++i) zero += to[i] * 0.0f;
    if (!(zero == 0)) {
      throw Error(
          "the network gave NaN or infinity for a sentence: its weights are damaged, or the "
          "precision is too low for them; try --precision f32");
    }
    tokens += window.length(unique_[static_cast<std::size_t>(row)]);
  }
  encoded_sentences_ += out.rows();
  encoded_tokens_ += tokens;
  padded_tokens_ += out.rows() * batch.padded;
  done(tokens);
}

void BatchEncoder::encode(const SentenceWindow& window, int64_t first, int64_t last,
                          const std::function<void(int64_t)>& done) {
  first_ = first;
  find_unique(window, first, last);
  order_.resize(unique_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int64_t>(i);
  // Long ones first, so that the slots run dry at the end over small batches.
  std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
    return window.length(unique_[static_cast<std::size_t>(a)]) >
           window.length(unique_[static_cast<std::size_t>(b)]);
  });
  vectors_.resize(unique_.size() * static_cast<std::size_t>(engine_.width()));

  std::vector<Batch> batches;
  for (std::size_t i = 0; i < order_.size();) {
    const auto padded = [&](std::size_t at) {
      return engine_.padded_length(window.length(unique_[static_cast<std::size_t>(order_[at])]));
    };
    const int64_t length = padded(i);
    const std::size_t most = i + static_cast<std::size_t>(engine_.batch_rows(length));
    std::size_t end = i + 1;
    while (end < order_.size() && end < most && padded(end) == length) ++end;
    batches.push_back({i, end, length});
    i = end;
  }
  const auto slots = static_cast<std::size_t>(engine_.slots());
  for (std::size_t b = 0; b < batches.size() + slots; ++b) {
    const int slot = static_cast<int>(b % slots);
    if (b >= slots && b - slots < batches.size()) finish(window, batches[b - slots], slot, done);
    if (b < batches.size()) start(window, batches[b], slot);
  }
}

}  // namespace cfaa
