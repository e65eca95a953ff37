#pragma once

// Thrown by a device that has no room left: an Error that also knows how much was asked for, so
// that whoever knows what the memory is used for can say what to make smaller.

#include <cstddef>
#include <string>

#include "host/core/error.h"

namespace cfaa {

class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& sentence, std::size_t bytes) : Error(sentence), bytes_(bytes) {}

  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
};

}  // namespace cfaa
