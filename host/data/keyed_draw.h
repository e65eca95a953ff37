#pragma once

// A random number that belongs to an interaction: a keyed hash of (seed, domain, raw user, raw
// item), so that the order of files, threads and chunks cannot change a split. The message is the
// text "purpose\tdomain\tuser\titem" and the hash XXH3-64 with the seed: anybody can repeat it.

#include <xxhash.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace cfaa {

class KeyedDraw {
 public:
  KeyedDraw(std::string_view purpose, std::string_view domain, int64_t seed)
      : message_(std::string(purpose) + '\t' + std::string(domain) + '\t'),
        prefix_(message_.size()),
        seed_(static_cast<uint64_t>(seed)) {}

  uint64_t bits(std::string_view user, std::string_view item) {
    message_.resize(prefix_);
    message_.append(user);
    message_.push_back('\t');
    message_.append(item);
    return XXH3_64bits_withSeed(message_.data(), message_.size(), seed_);
  }

  // Uniform in [0, 1) with 53 bits.
  double uniform(std::string_view user, std::string_view item) {
    return static_cast<double>(bits(user, item) >> 11) * 0x1p-53;
  }

 private:
  std::string message_;
  std::size_t prefix_;
  uint64_t seed_;
};

}  // namespace cfaa
