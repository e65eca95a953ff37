#pragma once

// A regular file, mapped read-only. Big inputs are read this way: nothing is copied that is not
// used.

#include <cstddef>
#include <span>
#include <string>

namespace cfaa {

class MappedFile {
 public:
  MappedFile() = default;

  // Throws Error naming the path and the reason: missing, a directory, no permission.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Tells the system that the pages are not needed for now; they come back when touched.
  void forget_pages() const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cfaa
