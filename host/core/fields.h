#pragma once

// Named plain values: the settings that two runs must share, or what a journal keeps. Files hold
// them as a JSON object (host/io/json_file.h).

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace cfaa {

using FieldValue = std::variant<bool, int64_t, double, std::string>;
using Fields = std::map<std::string, FieldValue>;

// Text as it is, numbers as JSON writes them.
std::string shown(const FieldValue& value);

// The whole number of that name; the fallback where there is none.
int64_t whole_field(const Fields& fields, const std::string& name, int64_t fallback = 0);

// The first setting by name that differs: "layer 'last', this one has 'penultimate'"; "" where none
// does.
std::string setting_difference(const Fields& before, const Fields& now);

}  // namespace cfaa
