#include "host/run/directory/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "host/core/error.h"
#include "host/run/directory/run_directory.h"

namespace cfaa {
namespace {

bool same_file(int descriptor, const std::filesystem::path& path) {
  struct stat held {
  }, named{};
  return ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

std::string holder(const std::filesystem::path& path) {
  std::ifstream file(path);
  int64_t process = 0;
  return file >> process ? fmt::format("process {}", process) : "another process";
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& folder) : path_(RunDirectory(folder).lock()) {
  do {  // whoever held it may have removed the file between its opening and its lock here
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) {
      throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
    }
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      ::close(descriptor_);
      throw Error(
          fmt::format("{}: {} is training this run; wait for it or end it, or give another "
                      "--out",
                      folder.string(), holder(path_)));
    }
  } while (!same_file(descriptor_, path_));
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const int reason = errno;
    ::close(descriptor_);
    throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(reason)));
  }
}

RunLock::~RunLock() {
  if (same_file(descriptor_, path_)) ::unlink(path_.c_str());
  ::close(descriptor_);
}

}  // namespace cfaa
