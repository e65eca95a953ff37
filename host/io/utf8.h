#pragma once

// UTF-8: decoding, encoding, and making any bytes well-formed.
//
// Everything in host/text works on well-formed UTF-8. Text from outside is checked by the readers
// of host/data or goes through `well_formed` first; after that decoding needs no checks.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cfaa {

/// The code point that stands where bytes were not UTF-8.
constexpr char32_t kReplacementCharacter = 0xFFFD;

/// Whether the bytes are well-formed UTF-8.
bool is_utf8(std::string_view bytes);

/// `text` itself if it is well-formed UTF-8, otherwise a copy in `storage` in which every maximal
/// ill-formed piece became U+FFFD, as Python's decode(errors="replace") has it. `replaced` grows by
/// the number of pieces. NUL is an ordinary code point.
std::string_view well_formed(std::string_view text, std::string& storage, std::size_t& replaced);

/// Number of code points in well-formed UTF-8.
std::size_t count_code_points(std::string_view text);

/// Appends one code point; surrogates and values past U+10FFFF become U+FFFD.
void append_utf8(std::string& out, char32_t code_point);

/// Decodes the code point at `p` of well-formed UTF-8 and moves `p` behind it.
inline char32_t next_code_point(const char*& p) {
  const auto* b = reinterpret_cast<const unsigned char*>(p);
  if (b[0] < 0x80) return p += 1, b[0];
  if (b[0] < 0xE0) return p += 2, char32_t((b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu));
  if (b[0] < 0xF0) {
    return p += 3, char32_t((b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu));
  }
  return p += 4, char32_t((b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 |
                          (b[3] & 0x3Fu));
}

/// The start of the code point that ends at `p`.
inline const char* previous_code_point(const char* p) {
  do --p;
  while ((static_cast<unsigned char>(*p) & 0xC0) == 0x80);
  return p;
}

}  // namespace cfaa
