#pragma once

// An immutable map from strings to numbers, made once and then only read: open addressing, one
// cache line per lookup in the common case. Used for vocabularies, merge pieces and the sentence
// splitter's special cases.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfaa {

/// A hash of bytes: short strings, which is nearly all of them, take two loads and two products.
inline std::uint64_t hash_bytes(std::string_view text) {
  constexpr std::uint64_t k1 = 0x9E3779B97F4A7C15u, k2 = 0xD6E8FEB86659FD93u;
  const char* p = text.data();
  std::size_t n = text.size();
  std::uint64_t h = n * k1;
  std::uint64_t a = 0, b = 0;
  while (n > 16) {
    std::memcpy(&a, p, 8);
    std::memcpy(&b, p + 8, 8);
    h = (std::rotl((h ^ a) * k1, 29) ^ b) * k2;
    p += 16, n -= 16;
  }
  a = b = 0;
  if (n >= 8) {
    std::memcpy(&a, p, 8);
    std::memcpy(&b, p + n - 8, 8);
  } else if (n >= 4) {
    std::uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    a = low, b = high;
  } else if (n > 0) {
    a = static_cast<unsigned char>(p[0]) | static_cast<unsigned char>(p[n / 2]) << 8 |
        static_cast<unsigned char>(p[n - 1]) << 16;
  }
  h = (std::rotl((h ^ a) * k1, 29) ^ b) * k2;
  return h ^ (h >> 32);
}

class StringIndex {
 public:
  static constexpr std::int32_t kAbsent = -1;

  StringIndex() : StringIndex(std::vector<std::pair<std::string, std::int32_t>>{}) {}

  /// Of two equal strings the later one counts. Values must not be negative.
  explicit StringIndex(const std::vector<std::pair<std::string, std::int32_t>>& entries) {
    slots_.resize(std::bit_ceil(entries.size() * 2 + 2));
    for (const auto& [text, value] : entries) {
      longest_ = std::max(longest_, text.size());
      Slot* slot = find_slot(text);
      if (slot->value == kAbsent) {
        slot->begin = static_cast<std::uint32_t>(bytes_.size());
        slot->size = static_cast<std::uint32_t>(text.size());
        slot->hash = static_cast<std::uint32_t>(hash_bytes(text) >> 32);
        bytes_ += text;
      }
      slot->value = value;
    }
  }

  /// The value of `text`, or kAbsent.
  std::int32_t find(std::string_view text) const {
    if (text.size() > longest_) return kAbsent;
    return const_cast<StringIndex*>(this)->find_slot(text)->value;
  }

  bool contains(std::string_view text) const { return find(text) != kAbsent; }

 private:
  struct Slot {
    std::uint32_t begin = 0, size = 0, hash = 0;
    std::int32_t value = kAbsent;
  };

  Slot* find_slot(std::string_view text) {
    const std::uint64_t hash = hash_bytes(text);
    for (std::size_t i = hash;; ++i) {
      Slot& slot = slots_[i & (slots_.size() - 1)];
      if (slot.value == kAbsent) return &slot;
      if (slot.hash == static_cast<std::uint32_t>(hash >> 32) && slot.size == text.size() &&
          std::memcmp(bytes_.data() + slot.begin, text.data(), text.size()) == 0) {
        return &slot;
      }
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::string bytes_;        // all strings, one after the other
  std::size_t longest_ = 0;
};

}  // namespace cfaa
