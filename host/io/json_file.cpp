#include "host/io/json_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/core/terminal/printable.h"
#include "host/io/mapped_file.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kLargest = std::size_t{64} << 20;
constexpr std::size_t kLongestQuote = 80;

// Whether arrays and objects lie in one another no deeper than may be. What is not JSON at all is
// the parser's matter.
bool is_shallow(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '\\':
        i += in_string;
        break;
      case '"':
        in_string = !in_string;
        break;
      case '[':
      case '{':
        depth += !in_string;
        if (depth > kDeepest) return false;
        break;
      case ']':
      case '}':
        depth -= !in_string && depth > 0;
        break;
      default:
        break;
    }
  }
  return true;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const MappedFile file(path.string());
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

json parse_json(std::string_view text) {
  if (!is_shallow(text)) return json(json::value_t::discarded);
  return json::parse(text, nullptr, false);
}

std::string quoted(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kLongestQuote) text = text.substr(0, kLongestQuote) + "...";
  return printable(text);
}

json read_json(const std::filesystem::path& path) {
  const MappedFile file(path.string());
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  if (text.size() > kLargest) {
    throw Error(fmt::format("{}: has {} MiB; a JSON file of more than {} MiB is not read",
                            path.string(), text.size() >> 20, kLargest >> 20));
  }
  if (!is_shallow(text)) {
    throw Error(fmt::format("{}: is nested deeper than {} levels; write it flatter", path.string(),
                            kDeepest));
  }
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    const auto* end = text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), error.byte));
    throw Error(fmt::format("{}: line {}: is not valid JSON near byte {}; fix it there",
                            path.string(), 1 + std::count(text.begin(), end, '\n'), error.byte));
  } catch (const json::exception&) {  // a number that no double can hold
    throw Error(path.string() + ": is not valid JSON: a number is out of range");
  }
}

json read_json_object(const std::filesystem::path& path) {
  json object = read_json(path);
  if (!object.is_object()) throw Error(path.string() + ": must hold one JSON object");
  return object;
}

json to_json(const Fields& fields) {
  json object = json::object();
  for (const auto& [name, value] : fields) {
    std::visit([&, &name = name](const auto& plain) { object[name] = plain; }, value);
  }
  return object;
}

std::optional<Fields> fields_of(const json& object) {
  if (!object.is_object()) return std::nullopt;
  Fields fields;
  for (const auto& [name, value] : object.items()) {
    if (value.is_boolean()) {
      fields[name] = value.get<bool>();
    } else if (value.is_number_integer()) {
      fields[name] = value.get<int64_t>();
    } else if (value.is_number_float()) {
      fields[name] = value.get<double>();
    } else if (value.is_string()) {
      fields[name] = value.get<std::string>();
    } else {
      return std::nullopt;
    }
  }
  return fields;
}

}  // namespace cfaa
