#pragma once

// One process at a time trains a run: the file run.lock, locked as long as the object lives, with
// the process's id in it. A killed process leaves the file and not the lock.

#include <filesystem>

namespace cfaa {

class RunLock {
 public:
  // Error, naming the process that holds it, where another one trains in `folder`.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();  // the file goes
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace cfaa
