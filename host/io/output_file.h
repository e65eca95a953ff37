#pragma once

// A new file written front to back through a buffer, flushed to disk when closed, with a running
// hash of what is written. The disk works behind the writer; only close() waits for it, so whoever
// writes several files ends each with finish() and closes them all when the last is written. Every
// failure (a full disk, say) is an Error that names the file.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace cfaa {

class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  // From here on bytes count towards hash(). Called once, or never.
  void start_hash();
  uint64_t hash();  // XXH3-64
  uint64_t size() const { return written_ + used_; }
  // Overwrites bytes near the front, which the hash does not see.
  void overwrite(uint64_t offset, std::string_view bytes);
  // The last byte is written: the disk gets what it has not got yet.
  void finish();
  // Flushes to disk. A file that is not closed is incomplete.
  void close();

 private:
  void flush();
  void put(const char* bytes, std::size_t count);
  void start_disk();
  [[noreturn]] void fail(const char* what) const;

  struct Hash;
  std::filesystem::path path_;
  int fd_ = -1;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
  uint64_t written_ = 0, started_ = 0;  // handed to the kernel; of these, sent on to the disk
  std::unique_ptr<Hash> hash_;
};

}  // namespace cfaa
