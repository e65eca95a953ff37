#pragma once

// A random number that belongs to an interaction: a keyed hash of (seed, domain, raw user, raw
// item), so that the order of files, threads and chunks cannot change a split. The message is the
// text "purpose\tdomain\tuser\titem" and the hash XXH3-64 with the seed: anybody can repeat it.

#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "host/core/error.h"
#include "host/data/review.h"

namespace cfaa {

class KeyedDraw {
 public:
  KeyedDraw(std::string_view purpose, std::string_view domain, int64_t seed)
      : prefix_(std::string(purpose) + '\t' + std::string(domain) + '\t'),
        seed_(static_cast<uint64_t>(seed)) {}

  // From any thread. Ids are at most kLongestId bytes, so the message fits on the stack.
  uint64_t bits(std::string_view user, std::string_view item) const {
    char message[2 * kLongestId + 64];
    CFAA_ASSERT(prefix_.size() + user.size() + item.size() < sizeof(message));
    char* end = message;
    const auto put = [&](std::string_view part) {
      std::memcpy(end, part.data(), part.size());
      end += part.size();
    };
    put(prefix_);
    put(user);
    put("\t");
    put(item);
    return XXH3_64bits_withSeed(message, static_cast<std::size_t>(end - message), seed_);
  }

  // Uniform in [0, 1) with 53 bits.
  double uniform(std::string_view user, std::string_view item) const {
    return static_cast<double>(bits(user, item) >> 11) * 0x1p-53;
  }

 private:
  std::string prefix_;
  uint64_t seed_;
};

}  // namespace cfaa
