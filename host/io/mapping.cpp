#include "host/io/mapping.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <utility>

namespace cfaa {
namespace {

// What the signal's handler reads, which may take no lock. Mappings beyond the last place are
// usable but have no name there.
struct Place {
  std::atomic<bool> taken = false;
  std::atomic<const std::byte*> data = nullptr;
  std::size_t size = 0;
  std::array<char, 512> name{};
};
std::array<Place, 256> places;

void enter(const std::byte* data, std::size_t size, const std::string& name) {
  for (Place& place : places) {
    if (place.taken.exchange(true)) continue;
    place.size = size;
    place.name[name.copy(place.name.data(), place.name.size() - 1)] = '\0';
    place.data = data;
    return;
  }
}

void leave(const std::byte* data) {
  for (Place& place : places) {
    if (place.data != data) continue;
    place.data = nullptr;
    place.taken = false;
    return;
  }
}

void explain(int signal, siginfo_t* fault, void*) {
  const auto* address = static_cast<const std::byte*>(fault->si_addr);
  for (Place& place : places) {
    const std::byte* data = place.data;
    if (data == nullptr || address < data || address >= data + place.size) continue;
    char before[] = "cfaa_gpu: ",
         after[] = ": was cut short while it was read; run again when it is whole\n";
    const iovec parts[] = {{before, std::strlen(before)},
                           {place.name.data(), std::strlen(place.name.data())},
                           {after, std::strlen(after)}};
    [[maybe_unused]] const ssize_t written = ::writev(STDERR_FILENO, parts, 3);
    ::_exit(2);
  }
  std::signal(signal, SIG_DFL);  // not ours: the same instruction faults again
}

}  // namespace

Mapping::Mapping(int descriptor, std::size_t size, bool shared, const std::string& name) {
  if (size == 0) return;
  void* memory = ::mmap(nullptr, size, PROT_READ, shared ? MAP_SHARED : MAP_PRIVATE, descriptor, 0);
  if (memory == MAP_FAILED) return;
  data_ = static_cast<const std::byte*>(memory);
  size_ = size;
  enter(data_, size_, name);
}

Mapping::~Mapping() {
  if (data_ == nullptr) return;
  leave(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void explain_shortened_files() {
  struct sigaction action {};
  action.sa_sigaction = explain;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace cfaa
