#include "host/data/review.h"

#include <charconv>
#include <cmath>

#include "host/io/utf8.h"

namespace cfaa {

double parse_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

bool repair_utf8(std::string_view& record, InvalidUtf8 invalid, std::string& storage) {
  if (invalid == InvalidUtf8::refuse) return is_utf8(record);
  std::size_t replaced = 0;
  record = well_formed(record, storage, replaced);
  return true;
}

}  // namespace cfaa
