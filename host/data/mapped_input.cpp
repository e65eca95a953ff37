#include "host/data/mapped_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/core/error.h"

namespace cfaa {

std::shared_ptr<const MappedInput> MappedInput::map(int descriptor, const struct stat& opened,
                                                    const std::string& name) {
  if (!S_ISREG(opened.st_mode) || opened.st_size == 0) return nullptr;
  const std::shared_ptr<MappedInput> input(new MappedInput);
  const auto size = static_cast<std::size_t>(opened.st_size);
  input->name_ = name;
  input->opened_ = opened;
  input->descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (input->descriptor_ < 0) return nullptr;
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return nullptr;
  input->bytes_ = {static_cast<const char*>(memory), size};
  return input;
}

MappedInput::~MappedInput() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MappedInput::check_unchanged() const {
  struct stat now {};
  const bool same = ::fstat(descriptor_, &now) == 0 && now.st_size == opened_.st_size &&
                    now.st_mtim.tv_sec == opened_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec;
  if (!same) throw Error(name_ + ": changed while it was read; run prepare again when it is whole");
}

}  // namespace cfaa
