#pragma once

// A network engine for tests of what lies around it: a sequence's vector is the mean of hashed
// numbers of its tokens and their places, a known function of its ids alone. It checks the contract
// of its caller: slots free, lengths right, padding as promised.

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "host/core/error.h"
#include "host/encoder/network.h"

namespace cfaa::test {

class HashedEngine : public NetworkEngine {
 public:
  struct Shape {
    int64_t width = 12, batch_tokens = 64, bucket = 1;
    int slots = 2;
  };
  explicit HashedEngine(Shape shape) : shape_(shape), under_way_(shape.slots), busy_(shape.slots) {}
  HashedEngine() : HashedEngine(Shape()) {}

  static std::vector<float> vector_of(const int32_t* ids, int64_t length, int64_t width) {
    std::vector<double> sum(static_cast<std::size_t>(width), 0);
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t i = 0; i < width; ++i) {
        const int64_t key[3] = {ids[t], t, i};
        sum[static_cast<std::size_t>(i)] +=
            static_cast<double>(XXH3_64bits(key, sizeof(key)) >> 40) / (1 << 23) - 1;
      }
    }
    std::vector<float> mean;
    for (const double value : sum) mean.push_back(static_cast<float>(value / double(length)));
    return mean;
  }

  int64_t width() const override { return shape_.width; }
  int slots() const override { return shape_.slots; }
  int64_t padded_length(int64_t length) const override {
    return (length + shape_.bucket - 1) / shape_.bucket * shape_.bucket;
  }
  int64_t batch_rows(int64_t padded) const override {
    return std::max<int64_t>(1, shape_.batch_tokens / padded);
  }

  void start(int slot, const TokenBatch& batch) override {
    ++starts;
    if (starts == stop_at) stop.store(true);
    if (--starts_left == 0) throw Error("the engine was told to stop here");
    CFAA_ASSERT(slot >= 0 && slot < shape_.slots && !busy_[static_cast<std::size_t>(slot)]);
    CFAA_ASSERT(batch.ids.rows() >= 1 && batch.ids.rows() <= batch_rows(batch.ids.cols()));
    std::vector<float>& out = under_way_[static_cast<std::size_t>(slot)];
    out.clear();
    for (int64_t r = 0; r < batch.ids.rows(); ++r) {
      const int64_t length = batch.lengths(r);
      CFAA_ASSERT(padded_length(length) == batch.ids.cols());
      const std::vector<float> row = vector_of(&batch.ids(r, 0), length, shape_.width);
      out.insert(out.end(), row.begin(), row.end());
      seen.emplace(&batch.ids(r, 0), &batch.ids(r, 0) + length);
      ++sequences;
    }
    busy_[static_cast<std::size_t>(slot)] = true;
  }

  MatrixView<const float> finish(int slot) override {
    CFAA_ASSERT(busy_[static_cast<std::size_t>(slot)]);
    busy_[static_cast<std::size_t>(slot)] = false;
    const std::vector<float>& out = under_way_[static_cast<std::size_t>(slot)];
    return {out.data(), {static_cast<int64_t>(out.size()) / shape_.width, shape_.width}};
  }

  std::string description() const override { return "hashed"; }

  int64_t starts_left = -1;  // throws when it comes to 0
  int64_t stop_at = -1;      // asks to be stopped at this start
  std::atomic<bool> stop{false};
  int64_t starts = 0, sequences = 0;
  std::multiset<std::vector<int32_t>> seen;

 private:
  Shape shape_;
  std::vector<std::vector<float>> under_way_;
  std::vector<char> busy_;
};

}  // namespace cfaa::test
