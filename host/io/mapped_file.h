#pragma once

// A regular file, mapped read-only. Big inputs are read this way: nothing is copied that is not
// used.

#include <cstddef>
#include <span>
#include <string>

#include "host/io/mapping.h"

namespace cfaa {

class MappedFile {
 public:
  MappedFile() = default;

  // Throws Error naming the path and the reason: missing, a directory, no permission.
  explicit MappedFile(const std::string& path);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return mapping_.bytes(); }

  // Tells the system that the pages are not needed for now; they come back when touched.
  void forget_pages() const;

 private:
  std::string path_;
  Mapping mapping_;
};

}  // namespace cfaa
