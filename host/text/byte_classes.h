#pragma once

// Letters, numbers and white space as the byte-level regular expression of GPT-2 and RoBERTa sees
// them (\p{L}, \p{N}, \s), from host/text/tables/bytelevel_chars.json.

#include <cstdint>

#include "host/text/code_point_table.h"

namespace cfaa {

enum class ByteClass : std::uint8_t { kOther, kLetter, kNumber, kSpace };

/// The table, built at first use.
const CodePointTable<ByteClass>& byte_classes();

inline ByteClass byte_class(char32_t c) {
  return byte_classes()[c];
}

}  // namespace cfaa
