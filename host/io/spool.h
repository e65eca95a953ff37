#pragma once

// Memory that may be larger than the machine's. Up to a bound it is ordinary memory; beyond it
// lies in an unlinked file, mapped: the system writes its pages out and takes them back when memory
// is short, and nothing is left of it however the program ends. Fit for what is read and written
// in long runs; reading it here and there costs a disk access each once it no longer fits.
//
// Disk space is reserved before it is used: a full disk is an Error that names the folder, not a
// signal.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace cfaa {

class Spool {
 public:
  // `folder` must exist once the first byte beyond `in_memory` is asked for.
  Spool(std::filesystem::path folder, uint64_t in_memory);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Pages that nobody else has; the content is not defined. Any thread.
  void* take(std::size_t bytes);
  void give_back(void* memory);
  // They will not be needed for a while: what lies in the file is sent to the disk and is no longer
  // counted to this program.
  void rest(const void* memory);

  uint64_t on_disk() const;  // bytes that lie in the file now

 private:
  struct Part {
    std::size_t bytes = 0;
    uint64_t offset = 0;  // in the file
    bool in_file = false;
  };
  void* map(Part& part);
  [[noreturn]] void fail(std::size_t bytes, int reason) const;

  std::filesystem::path folder_;
  uint64_t in_memory_;
  mutable std::mutex mutex_;
  std::map<const void*, Part> parts_;
  int file_ = -1;
  uint64_t end_ = 0;      // of the file
  uint64_t used_ = 0;     // bytes in ordinary memory
  uint64_t on_disk_ = 0;  // bytes in the file
};

// For vectors that may lie in a spool; without one they are like any other. resize() leaves what it
// adds as it is.
template <class T>
class SpoolAllocator {
 public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  SpoolAllocator() = default;
  explicit SpoolAllocator(std::shared_ptr<Spool> spool) : spool_(std::move(spool)) {}
  template <class U>
  SpoolAllocator(const SpoolAllocator<U>& other) : spool_(other.spool()) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    return static_cast<T*>(is_small(bytes) ? ::operator new(bytes) : spool_->take(bytes));
  }
  void deallocate(T* memory, std::size_t count) {
    if (is_small(count * sizeof(T))) {
      ::operator delete(memory);
    } else {
      spool_->give_back(memory);
    }
  }
  template <class U>
  void construct(U*) {}
  template <class U, class First, class... Rest>
  void construct(U* at, First&& first, Rest&&... rest) {
    ::new (static_cast<void*>(at)) U(std::forward<First>(first), std::forward<Rest>(rest)...);
  }

  const std::shared_ptr<Spool>& spool() const { return spool_; }
  template <class U>
  bool operator==(const SpoolAllocator<U>& other) const {
    return spool_ == other.spool();
  }

 private:
  static constexpr std::size_t kSmall = 4096;  // bytes: not worth pages of their own
  bool is_small(std::size_t bytes) const { return !spool_ || bytes < kSmall; }

  std::shared_ptr<Spool> spool_;
};

template <class T>
using SpooledVector = std::vector<T, SpoolAllocator<T>>;

}  // namespace cfaa
