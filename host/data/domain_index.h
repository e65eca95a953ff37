#pragma once

// The binary index of a domain, `index.bin`: what the text files say, ready to be loaded. It names
// the size and hash of each text file, and has a checksum of its own. docs/data_format.md has the
// bytes.

#include <array>
#include <cstdint>
#include <string_view>

#include "host/data/dataset.h"
#include "host/io/output_file.h"

namespace cfaa {

// Size and XXH3-64 of users.tsv, items.tsv and the three .inter files, in this order.
struct TextIdentity {
  std::array<uint64_t, 5> size{}, hash{};
  bool operator==(const TextIdentity&) const = default;
};

struct DomainIndex {
  static constexpr const char* kName = "index.bin";

  // Writes the whole of a new file but for closing it.
  static void write(OutputFile& file, const Domain& domain, const TextIdentity& identity);
  // Reads ids and rows into `domain`, if the bytes are whole, consistent (indices in range, ids
  // ascending) and made from text of this identity; false otherwise.
  static bool read(std::string_view bytes, const TextIdentity& identity, Domain& domain);
};

}  // namespace cfaa
