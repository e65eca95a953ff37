#pragma once

// A directory that appears whole or not at all. It is filled under a temporary name beside its
// place and moved there by one rename; an old one is exchanged for the new in one step and then
// removed. Killed at any moment, the old or the new state is there, besides perhaps a temporary
// directory that the next run removes.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace cfaa {

// Directories that a command makes, and so may replace.
struct DirectoryKind {
  std::string command;  // "prepare"
  std::string marker;   // a file that every such directory holds
  // Whether such a directory may hold this file, named from its top: what nobody of us wrote is
  // never replaced.
  std::function<bool(const std::filesystem::path& file)> knows;
};

class StagedDirectory {
 public:
  // Error where the place is taken, unless `replace` and all that is there is of the kind; and
  // where one of `inputs`, files that are still to be read, lies in what would be replaced.
  StagedDirectory(const std::filesystem::path& place, bool replace, const DirectoryKind& kind,
                  const std::vector<std::string>& inputs = {});
  // Without commit() the temporary directory is removed.
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::filesystem::path& path() const { return staging_; }

  // Moves it into place. The files in it must have been flushed to disk by their writers.
  void commit();

 private:
  std::filesystem::path place_, staging_;
  bool replace_;
  int lock_ = -1;
};

}  // namespace cfaa
