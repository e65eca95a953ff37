#pragma once

// Numbers to work on, and how far a result is from what it should be.

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "host/core/philox.h"

namespace cfaa::bench {

template <class T>
std::vector<T> normal(int64_t count, uint64_t stream, double mean, double spread) {
  const Philox random{2022};
  std::vector<T> values(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const Philox::Block block = random(static_cast<uint64_t>(i), stream);
    const double u = (block.word[0] + 0.5) * 0x1p-32, v = (block.word[1] + 0.5) * 0x1p-32;
    values[static_cast<std::size_t>(i)] = static_cast<T>(
        mean + spread * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
  }
  return values;
}

// |found - expected| / |expected| by norms; NaN where anything is NaN or the sizes differ.
inline double relative_error(const std::vector<double>& found,
                             const std::vector<double>& expected) {
  if (found.size() != expected.size()) return std::nan("");
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

}  // namespace cfaa::bench
