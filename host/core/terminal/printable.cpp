#include "host/core/terminal/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace cfaa {
namespace {

struct Decoded {
  uint32_t code_point = 0;
  std::size_t bytes = 0;  // 0: the first byte begins no well-formed character
};

// An overlong form is not well formed: it could carry a control past whoever looks for its bytes.
Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || bytes > text.size()) return {};
  uint32_t code_point = byte(0) & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (code_point < kLeast[bytes] || code_point > 0x10FFFF || surrogate) return {};
  return {code_point, bytes};
}

bool is_control(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F);
}

// Separators of lines, and marks that turn the direction of what follows.
bool misleads(uint32_t c) {
  return c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  const auto out = std::back_inserter(shown);
  while (!text.empty()) {
    const auto [c, bytes] = decode(text);
    if (bytes == 0) {
      fmt::format_to(out, "\\x{:02X}", static_cast<uint8_t>(text.front()));
    } else if (c == '\n' || c == '\t' || c == '\r') {
      shown += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else if (is_control(c) && c < 0x80) {
      fmt::format_to(out, "\\x{:02X}", c);
    } else if (is_control(c) || misleads(c)) {
      fmt::format_to(out, "\\u{:04X}", c);
    } else {
      shown.append(text.substr(0, bytes));
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return shown;
}

bool has_control(std::string_view text) {
  while (!text.empty()) {
    const auto [c, bytes] = decode(text);
    if (bytes > 0 && is_control(c)) return true;
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return false;
}

}  // namespace cfaa
