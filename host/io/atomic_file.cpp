#include "host/io/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "host/core/error.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr int kMostLinks = 40;  // as the kernel has it

// NAME.cfaa-XXXXXX.tmp: no program but this one names its files so.
constexpr std::string_view kInfix = ".cfaa-", kSuffix = ".tmp";
constexpr std::size_t kRandomLetters = 6;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string temporary_name(const std::string& place) {
  static constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string name = place + std::string(kInfix);
  for (std::size_t i = 0; i < kRandomLetters; ++i) name += letters[random() % letters.size()];
  return name + std::string(kSuffix);
}

// NAME of a temporary file's name, "" of any other.
std::string_view named_after(std::string_view temporary) {
  constexpr std::size_t tail = kInfix.size() + kRandomLetters + kSuffix.size();
  if (temporary.size() <= tail || !temporary.ends_with(kSuffix)) return "";
  const std::size_t end = temporary.size() - tail;
  return temporary.substr(end, kInfix.size()) == kInfix ? temporary.substr(0, end) : "";
}

bool same_file(int descriptor, const fs::path& path) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// Removes those of `target`, or all for "", but never one whose writer lives and so holds its lock.
void sweep(const fs::path& folder, std::string_view target) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const std::string_view base = named_after(name);
    if (base.empty() || (!target.empty() && base != target)) continue;
    const int descriptor = ::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    ::close(descriptor);
  }
}

}  // namespace

fs::path output_place(const fs::path& path) {
  fs::path place = path;
  std::error_code ignored;
  for (int i = 0; i < kMostLinks && fs::is_symlink(place, ignored); ++i) {
    place = place.parent_path() / fs::read_symlink(place, ignored);
  }
  return place;
}

bool is_stream(const fs::path& path) {
  if (path == "-") return true;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

void sweep_temporaries(const fs::path& folder) {
  sweep(folder, "");
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  if (is_stream(path)) {
    open_stream();
  } else {
    open_temporary();
  }
  buffer_.reserve(kBufferBytes);
}

void AtomicFile::open_stream() {
  descriptor_ = path_ == "-" ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                             : ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail("cannot be written");
}

void AtomicFile::open_temporary() {
  place_ = output_place(path_).string();
  if (fs::is_directory(place_)) {
    throw Error(path_ + ": is a directory; name a file in it");
  }
  sweep(folder_of(place_), fs::path(place_).filename().string());
  do {  // a sweep elsewhere may take the file between its making and its lock
    close();
    temporary_ = temporary_name(place_);
    descriptor_ = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) fail("cannot be written");
  } while (descriptor_ < 0 ||
           (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 && !same_file(descriptor_, temporary_)));
  struct stat replaced {};
  if (::stat(place_.c_str(), &replaced) == 0) ::fchmod(descriptor_, replaced.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  close();
}

void AtomicFile::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void AtomicFile::fail(const char* what) {
  const int reason = errno;
  throw Error(fmt::format(
      "{}: {}: {}{}", path_ == "-" ? "stdout" : path_, what, std::strerror(reason),
      reason == ENOSPC && !temporary_.empty() ? "; free some room and run the command again" : ""));
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
  if (!temporary_.empty()) {
    if (::fsync(descriptor_) != 0) fail("cannot be flushed to the disk");
    if (::rename(temporary_.c_str(), place_.c_str()) != 0) fail("cannot be put in place");
    sync_folder(folder_of(place_));
  }
  close();
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace cfaa
