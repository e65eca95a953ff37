#pragma once

// A value per code point, kept as pages of 256 that share storage where nothing is set. The tables
// in host/text/tables are lists of ranges; they are expanded into this once, when first needed.

#include <cstdint>
#include <span>
#include <vector>

namespace cfaa {

struct CodePointRange {
  char32_t first, last;  // both inclusive
};

template <class Value>
class CodePointTable {
 public:
  CodePointTable() : page_of_(0x1100, 0), values_(256, Value{}) {}

  Value operator[](char32_t c) const { return values_[page_of_[c >> 8] * 256u + (c & 255)]; }

  /// The cell of a code point, giving its page storage of its own.
  Value& at(char32_t c) {
    std::uint16_t& page = page_of_[c >> 8];
    if (page == 0) {
      page = static_cast<std::uint16_t>(values_.size() / 256);
      values_.resize(values_.size() + 256, Value{});
    }
    return values_[page * 256u + (c & 255)];
  }

  /// Sets a bit of every code point in the ranges (Value an unsigned integer).
  void add_flag(std::span<const CodePointRange> ranges, Value flag) {
    for (const auto& [first, last] : ranges) {
      for (char32_t c = first; c <= last; ++c) at(c) = static_cast<Value>(at(c) | flag);
    }
  }

  /// Gives every code point in the ranges this value.
  void assign(std::span<const CodePointRange> ranges, Value value) {
    for (const auto& [first, last] : ranges) {
      for (char32_t c = first; c <= last; ++c) at(c) = value;
    }
  }

 private:
  std::vector<std::uint16_t> page_of_;  // 0x110000 / 256; page 0 is the one where nothing is set
  std::vector<Value> values_;
};

}  // namespace cfaa
