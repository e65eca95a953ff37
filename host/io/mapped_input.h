#pragma once

// A plain input file where it lies. A text that stands in it as it is need not be copied, only
// pointed at, and most of an input is such text. Its pages belong to the system, which takes them
// back when memory is short.
//
// Readers parse copies; what they point at is read again when it is written out. Should the file
// have changed by then, check_unchanged() says so. A file that is cut short in between ends the
// program (host/io/mapping.h), which leaves the old output in place as any other death does.

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>

#include "host/io/mapping.h"

namespace cfaa {

class MappedInput {
 public:
  // `opened`: what fstat said of the descriptor before its first byte was read. Null where there is
  // nothing to map (a pipe, an empty file) or the system will not.
  static std::shared_ptr<const MappedInput> map(int descriptor, const struct stat& opened,
                                                const std::string& name);
  ~MappedInput();
  MappedInput(const MappedInput&) = delete;
  MappedInput& operator=(const MappedInput&) = delete;

  std::string_view bytes() const;

  // Throws Error naming the file where it was written to since it was opened.
  void check_unchanged() const;

 private:
  MappedInput() = default;

  std::string name_;
  int descriptor_ = -1;
  struct stat opened_ {};
  Mapping mapping_;
};

}  // namespace cfaa
