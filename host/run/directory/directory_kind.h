#pragma once

// What a directory is, for whoever was given the wrong one.

#include <filesystem>

namespace cfaa {

// Error where `path` is not a run, saying what it is instead and what a run has.
void require_run(const std::filesystem::path& path);

// Error where `path` is a run, or otherwise not what `prepare` writes.
void require_prepared(const std::filesystem::path& path);

}  // namespace cfaa
