#include "host/embed/batches.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "host/core/error.h"

namespace cfaa {

BatchEncoder::BatchEncoder(NetworkEngine& engine, int32_t pad_id)
    : engine_(engine), pad_id_(pad_id) {}

void BatchEncoder::find_unique(int64_t first, int64_t last, const std::vector<char>& skipped) {
  const SentenceWindow& window = *window_;
  const auto count = static_cast<std::size_t>(last - first);
  const std::size_t mask = std::bit_ceil(2 * count + 1) - 1;
  buckets_.assign(mask + 1, -1);
  row_.resize(count);
  unique_.clear();
  // Documents are passed along with their sentences.
  std::size_t document = 0;
  int64_t end_of_document = window.sentences.empty() ? 0 : window.sentences[0];
  for (int64_t s = first; s < last; ++s) {
    while (s >= end_of_document) end_of_document += window.sentences[++document];
    if (!skipped.empty() && skipped[document]) continue;
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

void BatchEncoder::start(const Batch& batch, int slot) {
  const SentenceWindow& window = *window_;
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

int64_t BatchEncoder::finish(const Batch& batch, int slot) {
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
    tokens += length(row);
  }
  encoded_sentences_ += out.rows();
  encoded_tokens_ += tokens;
  padded_tokens_ += out.rows() * batch.padded;
  done_ = batch.end;
  return tokens;
}

void BatchEncoder::begin(const SentenceWindow& window, int64_t first, int64_t last,
                         const std::vector<char>& skipped) {
  window_ = &window;
  first_ = first;
  done_ = 0;
  find_unique(first, last, skipped);
  order_.resize(unique_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int64_t>(i);
  // Long ones first, so that the slots run dry at the end over small batches.
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int64_t a, int64_t b) { return length(a) > length(b); });
  vectors_.resize(unique_.size() * static_cast<std::size_t>(engine_.width()));
}

bool BatchEncoder::restore(const float* vectors, int64_t count, const std::string& key) {
  if (count > static_cast<int64_t>(order_.size())) return false;
  const int64_t width = engine_.width();
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(vectors + i * width, width,
                vectors_.data() + order_[static_cast<std::size_t>(i)] * width);
  }
  const bool fits = this->key(count) == key;
  if (fits) done_ = static_cast<std::size_t>(count);
  return fits;
}

void BatchEncoder::append_rows(int64_t from, std::vector<float>& out) const {
  const int64_t width = engine_.width();
  for (auto i = static_cast<std::size_t>(from); i < done_; ++i) {
    const float* row = vectors_.data() + order_[i] * width;
    out.insert(out.end(), row, row + width);
  }
}

std::string BatchEncoder::key(int64_t count) const {
  uint64_t key = 0;
  const int64_t width = engine_.width();
  const auto add = [&](const auto* values, int64_t number) {
    key = XXH3_64bits_withSeed(values, static_cast<std::size_t>(number) * sizeof(*values), key);
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const int64_t sentence = unique_[static_cast<std::size_t>(order_[i])];
    add(window_->tokens_of(sentence), window_->length(sentence));
    add(vectors_.data() + order_[i] * width, width);
  }
  return fmt::format("{:016x}", key);
}

std::vector<BatchEncoder::Batch> BatchEncoder::batches() const {
  std::vector<Batch> batches;
  const auto padded = [&](std::size_t at) { return engine_.padded_length(length(order_[at])); };
  for (std::size_t i = done_; i < order_.size();) {
    const int64_t length = padded(i);
    const std::size_t most = i + static_cast<std::size_t>(engine_.batch_rows(length));
    std::size_t end = i + 1;
    while (end < order_.size() && end < most && padded(end) == length) ++end;
    batches.push_back({i, end, length});
    i = end;
  }
  return batches;
}

bool BatchEncoder::encode(const std::function<bool(int64_t)>& done) {
  const std::vector<Batch> all = batches();
  const auto slots = static_cast<std::size_t>(engine_.slots());
  std::size_t started = 0, finished = 0;
  bool wanted = true;
  // All slots are busy, but at the end and after `done` has said no.
  while (finished < started || (wanted && started < all.size())) {
    if (started - finished == slots || started == all.size() || !wanted) {
      const std::size_t b = finished++;
      wanted = done(finish(all[b], static_cast<int>(b % slots))) && wanted;
    } else {
      start(all[started], static_cast<int>(started % slots));
      ++started;
    }
  }
  return finished == all.size();
}

}  // namespace cfaa
