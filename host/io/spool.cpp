#include "host/io/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "host/core/error.h"

namespace cfaa {
namespace {

constexpr std::size_t kPage = 4096, kHugePage = std::size_t{2} << 20;

std::size_t whole(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// A file without a name, or -1. Some file systems make none; there it has one for a moment.
int unnamed_file(const std::filesystem::path& folder) {
  const int made = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (made >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return made;
  std::string name = (folder / ".cfaa-spool-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

// Large blocks in huge pages: a million small reviews otherwise cost as many page faults as
// parsing.
void* ordinary_memory(std::size_t bytes) {
  if (bytes < kHugePage) return std::malloc(bytes);
  const std::size_t size = whole(bytes, kHugePage);
  void* memory = std::aligned_alloc(kHugePage, size);
  if (memory) ::madvise(memory, size, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

Spool::Spool(std::filesystem::path folder, uint64_t in_memory)
    : folder_(std::move(folder)), in_memory_(in_memory) {}

Spool::~Spool() {
  for (const auto& [memory, part] : parts_) {
    if (part.in_file) {
      ::munmap(const_cast<void*>(memory), part.bytes);
    } else {
      std::free(const_cast<void*>(memory));
    }
  }
  if (file_ >= 0) ::close(file_);
}

void Spool::fail(std::size_t bytes, int reason) const {
  throw Error(
      fmt::format("{}: {} MiB that --memory leaves no room for cannot be put aside there: "
                  "{}",
                  folder_.string(), (bytes >> 20) + 1, std::strerror(reason)));
}

void* Spool::map(Part& part) {
  if (file_ < 0) file_ = unnamed_file(folder_);
  if (file_ < 0) fail(part.bytes, errno);
  part.bytes = whole(part.bytes, kPage);
  part.offset = end_;
  part.in_file = true;
  const auto offset = static_cast<off_t>(part.offset), bytes = static_cast<off_t>(part.bytes);
  if (const int reason = ::posix_fallocate(file_, offset, bytes)) {
    if (::ftruncate(file_, offset) != 0) end_ += part.bytes;  // the rest stays a hole
    fail(part.bytes, reason);
  }
  void* memory = ::mmap(nullptr, part.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, offset);
  if (memory == MAP_FAILED) fail(part.bytes, errno);
  end_ += part.bytes;
  on_disk_ += part.bytes;
  return memory;
}

void* Spool::take(std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Part part{bytes};
  void* memory = nullptr;
  if (used_ + bytes <= in_memory_) {
    memory = ordinary_memory(bytes);
    if (!memory) throw std::bad_alloc();
    used_ += bytes;
  } else {
    memory = map(part);
  }
  parts_.emplace(memory, part);
  return memory;
}

void Spool::give_back(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = parts_.find(memory);
  CFAA_ASSERT(found != parts_.end());
  const Part part = found->second;
  parts_.erase(found);
  if (!part.in_file) {
    std::free(memory);
    used_ -= part.bytes;
    return;
  }
  ::munmap(memory, part.bytes);
  // The disk gets its room back at once, where the file system can; else when the file goes.
  [[maybe_unused]] const int done =
      ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(part.offset), static_cast<off_t>(part.bytes));
  on_disk_ -= part.bytes;
}

void Spool::rest(const void* memory) {
  Part part;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = parts_.find(memory);
    CFAA_ASSERT(found != parts_.end());
    part = found->second;
  }
  if (!part.in_file) return;
  ::sync_file_range(file_, static_cast<off_t>(part.offset), static_cast<off_t>(part.bytes),
                    SYNC_FILE_RANGE_WRITE);
  ::madvise(const_cast<void*>(memory), part.bytes, MADV_DONTNEED);  // shared: nothing is lost
}

uint64_t Spool::on_disk() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return on_disk_;
}

}  // namespace cfaa
