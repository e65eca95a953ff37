#pragma once

// Small JSON files: configurations, descriptions of runs and checkpoints, a model directory's
// config.json. Every failure names the path.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "host/core/error.h"

namespace cfaa {

// The bytes of a file; Error where it cannot be read.
std::string read_file(const std::filesystem::path& path);

// Error where it cannot be read or, with the line, is not JSON.
nlohmann::json read_json(const std::filesystem::path& path);

// The same of a file that must hold an object.
nlohmann::json read_json_object(const std::filesystem::path& path);

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
