#include "host/io/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/core/error.h"

namespace cfaa {
namespace {

constexpr std::size_t kBuffer = std::size_t{256} << 10;  // stays in the L2 cache
constexpr uint64_t kWriteBehind = uint64_t{8} << 20;

}  // namespace

struct OutputFile::Hash {
  XXH3_state_t* state = XXH3_createState();
  Hash() { XXH3_64bits_reset(state); }
  ~Hash() { XXH3_freeState(state); }
};

OutputFile::OutputFile(const std::filesystem::path& path) : path_(path), buffer_(kBuffer) {
  fd_ = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (fd_ < 0) fail("cannot be made");
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::fail(const char* what) const {
  throw Error(fmt::format("{}: {}: {}", path_.string(), what, std::strerror(errno)));
}

void OutputFile::put(const char* bytes, std::size_t count) {
  if (hash_) XXH3_64bits_update(hash_->state, bytes, count);
  while (count > 0) {
    const ssize_t done = ::write(fd_, bytes, count);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("cannot be written");
    bytes += done;
    count -= static_cast<std::size_t>(done);
    written_ += static_cast<uint64_t>(done);
  }
  if (written_ - started_ >= kWriteBehind) start_disk();
}

// The disk starts early, so that close() waits little. A hint: what it returns does not matter.
void OutputFile::start_disk() {
  ::sync_file_range(fd_, static_cast<off_t>(started_), static_cast<off_t>(written_ - started_),
                    SYNC_FILE_RANGE_WRITE);
  started_ = written_;
}

void OutputFile::flush() {
  const std::size_t count = std::exchange(used_, 0);
  put(buffer_.data(), count);
}

void OutputFile::write(std::string_view bytes) {
  if (bytes.size() > buffer_.size() - used_) {
    flush();
    if (bytes.size() >= buffer_.size()) {
      put(bytes.data(), bytes.size());
      return;
    }
  }
  std::copy(bytes.begin(), bytes.end(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ += bytes.size();
}

void OutputFile::start_hash() {
  flush();
  hash_ = std::make_unique<Hash>();
}

uint64_t OutputFile::hash() {
  CFAA_ASSERT(hash_);
  flush();
  return XXH3_64bits_digest(hash_->state);
}

void OutputFile::overwrite(uint64_t offset, std::string_view bytes) {
  flush();
  const ssize_t done = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (done != static_cast<ssize_t>(bytes.size())) fail("cannot be written");
}

void OutputFile::finish() {
  flush();
  start_disk();
}

void OutputFile::close() {
  flush();
  if (::fsync(fd_) != 0) fail("cannot be flushed to disk");
  if (::close(std::exchange(fd_, -1)) != 0) fail("cannot be closed");
}

}  // namespace cfaa
