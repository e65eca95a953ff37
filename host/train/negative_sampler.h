#pragma once

// Items drawn as negatives, uniformly or by popularity. A draw is a function of the random seed,
// the stream and its index in it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "host/core/philox.h"

namespace cfaa {

class NegativeSampler {
 public:
  NegativeSampler() = default;
  // Each of `items` alike.
  NegativeSampler(uint64_t seed, int64_t items)
      : random_{seed}, items_(static_cast<uint64_t>(items)) {}
  // By weight; `sums` are the running sums of the items' weights.
  NegativeSampler(uint64_t seed, std::vector<double> sums)
      : random_{seed}, items_(sums.size()), sums_(std::move(sums)) {}

  struct Draw {
    int32_t item = 0;
    bool taken = false;  // nothing else was found
  };
  // The first item drawn that is not `taken(item)`; after 64 attempts the last one.
  template <class Taken>
  Draw operator()(uint64_t index, uint64_t stream, Taken taken) const {
    constexpr uint64_t kAttempts = 64;
    int32_t item = 0;
    for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
      item = draw(index * kAttempts + attempt, stream);
      if (!taken(item)) return {item, false};
    }
    return {item, true};
  }

 private:
  int32_t draw(uint64_t at, uint64_t stream) const {
    if (sums_.empty()) return static_cast<int32_t>(random_.below(items_, at, stream));
    const Philox::Block block = random_(at, stream);
    const double x = (block.word[0] + block.word[1] / 4294967296.0) / 4294967296.0;
    const auto found = std::upper_bound(sums_.begin(), sums_.end(), x * sums_.back());
    return static_cast<int32_t>(std::min<std::ptrdiff_t>(
        found - sums_.begin(), static_cast<std::ptrdiff_t>(sums_.size()) - 1));
  }

  Philox random_{0};
  uint64_t items_ = 0;
  std::vector<double> sums_;
};

}  // namespace cfaa
