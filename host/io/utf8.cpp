#include "host/io/utf8.h"

#include <simdjson.h>

namespace cfaa {
namespace {

// Length of the longest well-formed sequence at b[0..n), or minus the length of the ill-formed
// piece there: the longest start of a sequence that could have become well-formed, at least 1.
int sequence_length(const unsigned char* b, std::size_t n) {
  const unsigned char lead = b[0];
  if (lead < 0x80) return 1;
  int need = 0;
  unsigned char low = 0x80, high = 0xBF;  // allowed range of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) {
    need = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    need = 3;
    if (lead == 0xE0) low = 0xA0;   // overlong
    if (lead == 0xED) high = 0x9F;  // surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    need = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;  // beyond U+10FFFF
  } else {
    return -1;
  }
  for (int i = 1; i < need; ++i) {
    if (static_cast<std::size_t>(i) >= n || b[i] < low || b[i] > high) return -i;
    low = 0x80, high = 0xBF;
  }
  return need;
}

// First byte that is not part of a well-formed sequence.
std::size_t well_formed_prefix(std::string_view text) {
  const auto* b = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t i = 0;
  while (i < text.size()) {
    const int length = sequence_length(b + i, text.size() - i);
    if (length < 0) break;
    i += static_cast<std::size_t>(length);
  }
  return i;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  return simdjson::validate_utf8(bytes.data(), bytes.size());
}

std::string_view well_formed(std::string_view text, std::string& storage, std::size_t& replaced) {
  if (is_utf8(text)) return text;
  storage.clear();
  while (true) {
    const std::size_t good = well_formed_prefix(text);
    storage.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) return storage;
    const auto* b = reinterpret_cast<const unsigned char*>(text.data());
    text.remove_prefix(static_cast<std::size_t>(-sequence_length(b, text.size())));
    append_utf8(storage, kReplacementCharacter);
    ++replaced;
  }
}

std::size_t count_code_points(std::string_view text) {
  // A byte that is not of the form 10xxxxxx starts a code point; the compiler vectorises this.
  std::size_t count = 0;
  for (const char c : text) count += static_cast<signed char>(c) >= -64;
  return count;
}

void append_utf8(std::string& out, char32_t c) {
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = kReplacementCharacter;
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

}  // namespace cfaa
