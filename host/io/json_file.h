#pragma once

// JSON files: configurations, descriptions of runs and checkpoints, what a model directory holds.
// The one reader of JSON that somebody else may have written: a file of more than 64 MiB, or nested
// deeper than 64 levels, is refused before it costs memory or stack. Every failure names the path.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "host/core/error.h"
#include "host/core/fields.h"

namespace cfaa {

// The bytes of a file; Error where it cannot be read.
std::string read_file(const std::filesystem::path& path);

// The JSON of a text; a discarded value where it is none or nested too deep.
nlohmann::json parse_json(std::string_view text);

// A value as messages quote it: printable, on one line and cut where it is long.
std::string quoted(const nlohmann::json& value);

// Error where it cannot be read or, with the line, is not JSON.
nlohmann::json read_json(const std::filesystem::path& path);

// The same of a file that must hold an object.
nlohmann::json read_json_object(const std::filesystem::path& path);

nlohmann::json to_json(const Fields& fields);

// None where it is no object of plain values.
std::optional<Fields> fields_of(const nlohmann::json& object);

// Whether the value is a T without loss: a whole number within its range, true or false, a number.
template <class T>
bool holds(const nlohmann::json& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value.is_boolean();
  } else if constexpr (std::is_integral_v<T>) {
    return value.is_number_unsigned()
               ? std::in_range<T>(value.get<uint64_t>())
               : value.is_number_integer() && std::in_range<T>(value.get<int64_t>());
  } else if constexpr (std::is_floating_point_v<T>) {
    return value.is_number();
  } else {
    return true;
  }
}

// A field of any type but null, or the fallback; a wrong type names the file and the field.
template <class T>
T field(const nlohmann::json& object, const char* name, const T& fallback,
        const std::filesystem::path& path) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return fallback;
  try {
    if (holds<T>(*found)) return found->get<T>();
  } catch (const nlohmann::json::exception&) {  // answered below
  }
  throw Error(path.string() + ": the field '" + name + "' has the wrong type: " + quoted(*found));
}

}  // namespace cfaa
