#pragma once

// XXH3-128 of bytes that come in pieces, as the 32 hexadecimal digits that manifests and journals
// keep: the pieces do not matter, only the bytes.

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "host/io/mapped_file.h"

namespace cfaa {

class ContentHash {
 public:
  ContentHash() { XXH3_128bits_reset(state_.get()); }

  void add(const void* bytes, std::size_t count) {
    XXH3_128bits_update(state_.get(), bytes, count);
  }
  void add(std::string_view text) { add(text.data(), text.size()); }

  // Of everything added so far.
  std::string text() const {
    const XXH128_hash_t digest = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

// Of a file, or of `count` bytes from `begin` on, of which a part at a time is in memory.
inline std::string content_hash(const MappedFile& file, std::size_t begin = 0,
                                std::size_t count = std::dynamic_extent) {
  constexpr std::size_t kPart = std::size_t{64} << 20;
  ContentHash hash;
  for (std::span<const std::byte> left = file.bytes().subspan(begin, count); !left.empty();) {
    const std::size_t part = std::min(left.size(), kPart);
    hash.add(left.data(), part);
    left = left.subspan(part);
    file.forget_pages();
  }
  return hash.text();
}

}  // namespace cfaa
