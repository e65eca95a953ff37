#pragma once

// How far a result is from what it should be.

#include <cmath>
#include <vector>

namespace cfaa::bench {

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
