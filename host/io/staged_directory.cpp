#include "host/io/staged_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "host/core/error.h"

namespace cfaa {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw Error(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
}

void sync(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot be opened to flush it");
  const int failed = ::fsync(fd);
  ::close(fd);
  if (failed) fail(path, "cannot be flushed to disk");
}

void check_place(const fs::path& place, bool replace, const DirectoryKind& kind) {
  if (!fs::exists(fs::symlink_status(place))) return;
  if (!replace) {
    throw Error(fmt::format("{}: is there already; --force replaces it", place.string()));
  }
  if (!fs::is_directory(fs::symlink_status(place)) ||
      (!fs::exists(place / kind.marker) && !fs::is_empty(place))) {
    throw Error(
        fmt::format("{}: holds no {}, so it was not made by this command and is not "
                    "replaced; move it away or choose another --out",
                    place.string(), kind.marker));
  }
  for (const auto& entry : fs::recursive_directory_iterator(place)) {
    const fs::path name = entry.path().lexically_relative(place);
    if (kind.knows(name)) continue;
    throw Error(
        fmt::format("{}: was not written by {}, so {} is not replaced; move it away or choose "
                    "another --out",
                    entry.path().string(), kind.command, place.string()));
  }
}

void check_inputs(const fs::path& place, const std::vector<std::string>& inputs) {
  const fs::path real = fs::weakly_canonical(place);
  for (const std::string& input : inputs) {
    // Nothing else lies in a folder: of a pipe, /dev/stdin leads to a name that is not there.
    std::error_code ignored;
    if (!fs::is_regular_file(input, ignored)) continue;
    const fs::path from_place = fs::weakly_canonical(input).lexically_relative(real);
    if (from_place.empty() || *from_place.begin() == "..") continue;
    throw Error(
        fmt::format("{}: lies in {}, which would be replaced; move it away or choose another --out",
                    input, place.string()));
  }
}

// .data.cfaa-XXXXXX.staging: no program but this one names its directories so.
constexpr std::string_view kInfix = ".cfaa-", kSuffix = ".staging";
constexpr std::size_t kRandomLetters = 6;

bool is_staging_of(std::string_view name, std::string_view place) {
  const std::string front = fmt::format(".{}{}", place, kInfix);
  return name.size() == front.size() + kRandomLetters + kSuffix.size() && name.starts_with(front) &&
         name.ends_with(kSuffix);
}

fs::path make_temporary(const fs::path& parent, const std::string& place) {
  static constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  for (;;) {
    std::string name = fmt::format(".{}{}", place, kInfix);
    for (std::size_t i = 0; i < kRandomLetters; ++i) name += letters[random() % letters.size()];
    const fs::path path = parent / (name + std::string(kSuffix));
    if (::mkdir(path.c_str(), 0755) == 0) return path;
    if (errno != EEXIST) fail(parent, "cannot be written to");
  }
}

// Temporary directories whose maker is gone: its lock died with it.
void remove_abandoned(const fs::path& parent, const std::string& place) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (!is_staging_of(entry.path().filename().string(), place)) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), ignored);
    ::close(fd);
  }
}

}  // namespace

StagedDirectory::StagedDirectory(const fs::path& place, bool replace, const DirectoryKind& kind,
                                 const std::vector<std::string>& inputs)
    : place_(fs::absolute(place).lexically_normal()), replace_(replace) {
  if (!place_.has_filename()) place_ = place_.parent_path();  // "data/" is "data"
  check_place(place_, replace, kind);
  check_inputs(place_, inputs);
  const fs::path parent = place_.parent_path();
  if (!fs::is_directory(parent)) {
    throw Error(
        fmt::format("{}: the directory {} does not exist", place.string(), parent.string()));
  }
  remove_abandoned(parent, place_.filename().string());
  staging_ = make_temporary(parent, place_.filename().string());
  lock_ = ::open(staging_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    std::error_code ignored;
    fs::remove_all(staging_, ignored);
    errno = reason;
    fail(parent, "cannot be written to");
  }
}

StagedDirectory::~StagedDirectory() {
  if (!staging_.empty()) {
    std::error_code ignored;
    fs::remove_all(staging_, ignored);
  }
  if (lock_ >= 0) ::close(lock_);
}

void StagedDirectory::commit() {
  std::vector<fs::path> directories = {staging_};
  for (const auto& entry : fs::recursive_directory_iterator(staging_)) {
    if (entry.is_directory()) directories.push_back(entry.path());
  }
  for (const fs::path& directory : directories) sync(directory);

  const auto rename = [&](unsigned flags) {
    return ::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, place_.c_str(), flags) == 0;
  };
  bool exchanged = false;
  if (!rename(RENAME_NOREPLACE)) {
    if (errno == EINVAL && !fs::exists(fs::symlink_status(place_))) {
      // A file system without these flags: nothing is there to be replaced, so plain will do.
      if (!rename(0)) fail(place_, "cannot be moved into place");
    } else if ((errno == EEXIST || errno == EINVAL) && replace_) {
      if (!rename(RENAME_EXCHANGE)) {
        fail(place_,
             "this file system cannot exchange it for the new one in one step (remove it "
             "first, or choose another --out)");
      }
      exchanged = true;
    } else if (errno == EEXIST) {
      throw Error(fmt::format("{}: has appeared meanwhile; --force replaces it", place_.string()));
    } else {
      fail(place_, "cannot be moved into place");
    }
  }
  const fs::path old = staging_;
  staging_.clear();
  sync(place_.parent_path());
  if (exchanged) {
    std::error_code ignored;
    fs::remove_all(old, ignored);
  }
}

}  // namespace cfaa
