#include "host/core/fields.h"

#include <fmt/format.h>

namespace cfaa {
namespace {

std::string quoted(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  if (found == fields.end()) return "none";
  const bool text = std::holds_alternative<std::string>(found->second);
  return text ? "'" + shown(found->second) + "'" : shown(found->second);
}

}  // namespace

std::string shown(const FieldValue& value) {
  return std::visit([](const auto& plain) { return fmt::format("{}", plain); }, value);
}

int64_t whole_field(const Fields& fields, const std::string& name, int64_t fallback) {
  const auto found = fields.find(name);
  if (found == fields.end()) return fallback;
  const auto* whole = std::get_if<int64_t>(&found->second);
  return whole == nullptr ? fallback : *whole;
}

std::string setting_difference(const Fields& before, const Fields& now) {
  Fields all = before;
  all.insert(now.begin(), now.end());
  for (const auto& [name, unused] : all) {
    const auto old_value = before.find(name), new_value = now.find(name);
    const bool both = old_value != before.end() && new_value != now.end();
    if (both && old_value->second == new_value->second) continue;
    return fmt::format("{} {}, this one has {}", name, quoted(before, name), quoted(now, name));
  }
  return "";
}

}  // namespace cfaa
