#pragma once

// A file that appears whole or not at all: written under a temporary name beside its place,
// fsynced, renamed. Whatever was there survives a failure, a full disk and a kill.
//
// A symbolic link stays: the file it leads to is replaced. What is no regular file (a device, a
// FIFO, and "-", which is stdout) cannot be replaced, so it is written to as the bytes come.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cfaa {

class AtomicFile {
 public:
  // Throws Error where the folder is missing or not writable, or where `path` is a folder.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // not committed: the temporary file goes
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* bytes, std::size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }

  // Flushes, fsyncs, renames and fsyncs the folder.
  void commit();

 private:
  void open_stream();
  void open_temporary();
  void flush();
  void close();
  [[noreturn]] void fail(const char* what);

  std::string path_;       // as the caller says it
  std::string place_;      // where its links lead
  std::string temporary_;  // empty: written straight
  int descriptor_ = -1;
  std::vector<char> buffer_;
};

// The whole of a small file at once.
void write_file(const std::string& path, std::string_view content);

// Where an output to `path` ends up: the end of its symbolic links, which need not exist yet.
std::filesystem::path output_place(const std::filesystem::path& path);

// Whether an output to `path` is written as it comes: "-", a device, a FIFO.
bool is_stream(const std::filesystem::path& path);

// Removes the temporary files in `folder` that killed writers left. Those of a live one are locked.
void sweep_temporaries(const std::filesystem::path& folder);

}  // namespace cfaa
