#include "host/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "host/core/error.h"

namespace cfaa {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), temporary_(path + ".XXXXXX.tmp") {
  descriptor_ = ::mkostemps(temporary_.data(), 4, O_CLOEXEC);
  if (descriptor_ < 0) fail("cannot be written");
  ::fchmod(descriptor_, 0644);
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) {
  const int reason = errno;
  throw Error(path_ + ": " + what + ": " + std::strerror(reason) +
              (reason == ENOSPC ? "; free some room and run the command again" : ""));
}

void AtomicFile::write(const void* bytes, std::size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    if (buffer_.size() == kBufferBytes) flush();
    const std::size_t part = std::min(count, kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), next, next + part);
    next += part;
    count -= part;
  }
}

void AtomicFile::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t part = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) fail("cannot be written");
    done += static_cast<std::size_t>(part);
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  if (::fsync(descriptor_) != 0) fail("cannot be flushed to the disk");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be put in place");
  ::close(descriptor_);
  descriptor_ = -1;
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace cfaa
