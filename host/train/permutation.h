#pragma once

// A random permutation of 0 .. size - 1 as a function: element i is computed when asked for, so a
// run can stop and resume anywhere without keeping a shuffled list. A Feistel network over the next
// power of four, its round function Philox; values beyond `size` walk on along their cycle.

#include <cstdint>

#include "host/core/philox.h"

namespace cfaa {

class Permutation {
 public:
  // `stream` tells permutations of one seed apart.
  Permutation(int64_t size, uint64_t seed, uint64_t stream)
      : size_(static_cast<uint64_t>(size)), random_{seed}, stream_(stream) {
    while ((uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
  }

  int64_t operator()(int64_t i) const {
    uint64_t value = static_cast<uint64_t>(i);
    do {
      value = rounds(value);
    } while (value >= size_);
    return static_cast<int64_t>(value);
  }

 private:
  uint64_t rounds(uint64_t value) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t mixed = random_((right << 3) | round, stream_).word[0];
      const uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  uint64_t size_;
  Philox random_;
  uint64_t stream_;
  unsigned half_bits_ = 1;
};

}  // namespace cfaa
