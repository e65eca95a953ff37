#include "host/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/core/error.h"

namespace cfaa {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw Error(path + ": cannot be read: " + std::strerror(errno));
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    const bool directory = known && S_ISDIR(status.st_mode);
    ::close(descriptor);
    throw Error(path + ": is " + (directory ? "a directory" : "not a regular file") +
                "; give the path of a file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  mapping_ = Mapping(descriptor, size, /*shared=*/false, path);
  const int reason = errno;
  ::close(descriptor);
  if (mapping_.bytes().size() != size) {
    throw Error(path + ": cannot be mapped into memory: " + std::strerror(reason));
  }
}

void MappedFile::forget_pages() const {
  const std::span<const std::byte> pages = bytes();
  if (!pages.empty()) {
    ::madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_DONTNEED);
  }
}

}  // namespace cfaa
