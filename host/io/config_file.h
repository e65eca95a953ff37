#pragma once

// Configuration files. One may build upon another:
//
//   { "include": "amazon.json", "train": { "epochs": 50 } }
//
// takes everything of amazon.json, looked for beside the file itself, and puts its own keys over
// it, key by key.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace cfaa {

// The whole object, without "include". Error naming the file where one of them cannot be read, is
// no object, or where files include each other in a circle.
nlohmann::json read_config_file(const std::filesystem::path& path);

}  // namespace cfaa
