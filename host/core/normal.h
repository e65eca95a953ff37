#pragma once

// Normal numbers from the random words of Philox (Box and Muller).

#include <cmath>
#include <numbers>

#include "host/core/philox.h"

namespace cfaa {

// Two independent standard normal numbers: radius * cos(angle) and radius * sin(angle).
struct NormalPair {
  explicit NormalPair(const Philox::Block& block)
      : radius(std::sqrt(-2 * std::log((block.word[0] + 0.5) / 4294967296.0))),
        angle(2 * std::numbers::pi * block.word[1] / 4294967296.0) {}

  double radius, angle;
};

inline double standard_normal(const Philox::Block& block) {
  const NormalPair pair(block);
  return pair.radius * std::cos(pair.angle);
}

}  // namespace cfaa
