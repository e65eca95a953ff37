#pragma once

// UTF-8 as the readers need it: checked at the speed of simdjson, repaired as Python's
// errors="replace" does (U+FFFD for each maximal ill-formed part).

#include <cstdint>
#include <string>
#include <string_view>

namespace cfaa {

bool is_utf8(std::string_view bytes);

// Appends `bytes` with every ill-formed part replaced by U+FFFD.
void append_replacing_invalid(std::string_view bytes, std::string& out);

// Appends one code point; surrogates and values past U+10FFFF become U+FFFD.
void append_code_point(uint32_t code_point, std::string& out);

}  // namespace cfaa
