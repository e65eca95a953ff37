#include "host/io/mapped_input.h"

#include <fcntl.h>
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
  input->mapping_ = Mapping(descriptor, size, /*shared=*/true, name);
  if (input->mapping_.bytes().empty()) return nullptr;
  return input;
}

MappedInput::~MappedInput() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string_view MappedInput::bytes() const {
  const std::span<const std::byte> bytes = mapping_.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void MappedInput::check_unchanged() const {
  struct stat now {};
  const bool same = ::fstat(descriptor_, &now) == 0 && now.st_size == opened_.st_size &&
                    now.st_mtim.tv_sec == opened_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec;
  if (!same) throw Error(name_ + ": changed while it was read; run prepare again when it is whole");
}

}  // namespace cfaa
