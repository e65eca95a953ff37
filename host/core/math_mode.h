#pragma once

#include <bit>
#include <cstdint>

namespace cfaa {

// How matrices of float are multiplied: in fp32, or with both factors rounded to TF32 (10 bits of
// mantissa) or bfloat16 (7 bits), for a GPU's tensor cores; sums are fp32. A caller must ask for
// rounding. The CPU rounds as a GPU does; double knows one way only.
enum class MathMode { fp32, tf32, bf16 };

// The bits of a finite factor, rounded to the nearest and ties to the even one, as the device that
// multiplies will see them. NaN and infinity stay what they are.
constexpr uint32_t rounded_bits(uint32_t bits, MathMode math) {
  if (math == MathMode::fp32 || (bits & 0x7F800000u) == 0x7F800000u) return bits;
  const int dropped = math == MathMode::tf32 ? 13 : 16;
  const uint32_t half = (uint32_t{1} << (dropped - 1)) - 1 + ((bits >> dropped) & 1u);
  return (bits + half) >> dropped << dropped;
}

inline float rounded(float value, MathMode math) {
  return std::bit_cast<float>(rounded_bits(std::bit_cast<uint32_t>(value), math));
}
inline double rounded(double value, MathMode) {
  return value;
}

}  // namespace cfaa
