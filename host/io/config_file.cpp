#include "host/io/config_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "host/core/error.h"
#include "host/io/json_file.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr int kMostIncludes = 8;

json read(const std::filesystem::path& path, int depth) {
  json own = read_json_object(path);
  const auto include = own.find("include");
  if (include == own.end()) return own;
  if (!include->is_string()) {
    throw Error(
        fmt::format("{}: 'include' must be the name of another configuration file", path.string()));
  }
  if (depth == kMostIncludes) {
    throw Error(
        fmt::format("{}: is the {}th file that includes another; do they include each other in a "
                    "circle?",
                    path.string(), kMostIncludes + 1));
  }
  json whole = read(path.parent_path() / include->get<std::string>(), depth + 1);
  own.erase("include");
  whole.merge_patch(own);
  return whole;
}

}  // namespace

json read_config_file(const std::filesystem::path& path) {
  return read(path, 0);
}

}  // namespace cfaa
