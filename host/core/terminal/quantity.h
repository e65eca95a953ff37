#pragma once

// Numbers as people write them: "1 user", "2 users", "10.3k".

#include <cstdint>
#include <string>
#include <string_view>

namespace cfaa {

// The count and its noun. `many` is for nouns that do not take an s.
std::string counted(int64_t count, std::string_view one, std::string_view many = {});

// Three significant digits with k, M, G or T behind them, never an exponent: 0.52, 987, 10.3k.
std::string short_number(double number);

// "1:05", "2:00:07".
std::string clock_text(double seconds);

}  // namespace cfaa
