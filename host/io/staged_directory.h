#pragma once

// A directory that appears whole or not at all. It is filled under a temporary name beside its
// place and moved there by one rename; an old one is exchanged for the new in one step and then
// removed. Killed at any moment, the old or the new state is there, besides perhaps a temporary
// directory that the next run removes.

#include <filesystem>
#include <string>

namespace cfaa {

class StagedDirectory {
 public:
  // Refuses a place that is taken, unless `replace` and it holds `marker` (a file that says that a
  // directory is of this kind: nothing else is ever replaced).
  StagedDirectory(const std::filesystem::path& place, bool replace, const std::string& marker);
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
