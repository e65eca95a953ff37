#include "host/io/json_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/io/mapped_file.h"

namespace cfaa {

using nlohmann::json;

std::string read_file(const std::filesystem::path& path) {
  const MappedFile file(path.string());
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

json read_json(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), error.byte));
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

}  // namespace cfaa
