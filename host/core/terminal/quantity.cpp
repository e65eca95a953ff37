#include "host/core/terminal/quantity.h"

#include <fmt/format.h>

#include <cmath>

namespace cfaa {

std::string counted(int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

std::string short_number(double number) {
  const char* suffix = "";
  // 999.5 would be rounded to a fourth digit.
  for (const char* larger : {"k", "M", "G", "T"}) {
    if (std::abs(number) < 999.5) break;
    number /= 1000;
    suffix = larger;
  }
  const double size = std::abs(number);
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  // Whole numbers that were not divided are counts: 7, not 7.00.
  if (*suffix == '\0' && number == std::floor(number)) return fmt::format("{:.0f}", number);
  return fmt::format("{:.{}f}{}", number, decimals, suffix);
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace cfaa
