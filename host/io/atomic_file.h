#pragma once

// A file that appears whole or not at all: written under a temporary name beside its place,
// fsynced, renamed. Whatever was there survives a failure, a full disk and a kill.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cfaa {

class AtomicFile {
 public:
  // Throws Error where the folder is missing or not writable.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // not committed: the temporary file goes
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* bytes, std::size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }

  // Flushes, fsyncs, renames and fsyncs the folder.
  void commit();

 private:
  void flush();
  [[noreturn]] void fail(const char* what);

  std::string path_, temporary_;
  int descriptor_ = -1;
  std::vector<char> buffer_;
};

// The whole of a small file at once.
void write_file(const std::string& path, std::string_view content);

}  // namespace cfaa
