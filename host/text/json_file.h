#pragma once

// The small JSON files of a model directory: config.json, tokenizer_config.json, modules.json. Keys
// that are not asked for are passed over, since each version of the libraries that write them adds
// some.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "host/core/error.h"

namespace cfaa {

// The bytes of a file; Error naming the path where it cannot be read.
std::string read_file(const std::filesystem::path& path);

// Error naming the path where it cannot be read or is not JSON.
nlohmann::json read_json(const std::filesystem::path& path);

// A field of any type but null, or the fallback; a wrong type names the file and the field.
template <class T>
T field(const nlohmann::json& object, const char* name, const T& fallback,
        const std::filesystem::path& path) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return fallback;
  try {
    return found->get<T>();
  } catch (const nlohmann::json::exception&) {
    throw Error(path.string() + ": the field '" + name + "' has the wrong type: " + found->dump());
  }
}

}  // namespace cfaa
