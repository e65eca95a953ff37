#pragma once

// Pages of an open file, read-only, for as long as this object lives.
//
// A page that the file no longer has cannot be read: the system sends SIGBUS. A program that called
// explain_shortened_files() then ends with a sentence that names the file.

#include <cstddef>
#include <span>
#include <string>

namespace cfaa {

class Mapping {
 public:
  Mapping() = default;

  // The descriptor may be closed afterwards. `shared`: what others write to the file shows. Without
  // bytes() where the system refuses (errno says why) or size is 0.
  Mapping(int descriptor, std::size_t size, bool shared, const std::string& name);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// For main(): reading what a mapped file lost ends the program with exit code 2.
void explain_shortened_files();

}  // namespace cfaa
