#pragma once
// Shared memory that remembers. Shared<T> of kernels/block.cuh is this class when emulated: every
// element knows whether it was written in this block, and who touched it since the last barrier.
// It fails, naming kernel, block, thread and element, on
//   - an index out of bounds,
//   - a read of an element nobody wrote,
//   - a race: two threads touch an element, one of them writes, and neither __syncthreads nor (in
//     one warp) __syncwarp lies between. A write that leaves the same value is no race.
//
// operator[] gives a reference object, not a T&. Write `float x = s[i];`, never `auto x = s[i];`
// (which does not compile further), and read structures whole: `float2 v = s[i];`.

#include <cstring>

#include "emulator/device.h"
#include "emulator/intrinsics.h"

// The watchman is not watched: at every access of shared memory that would cost the most.
#define EMULATOR_BOOKKEEPING __attribute__((no_sanitize("address", "undefined")))

namespace emulator {

[[noreturn]] void fail_shared_uninitialised(long long index, long long size);
[[noreturn]] void fail_shared_bounds(long long index, long long size);
[[noreturn]] void fail_shared_race(const char* what, const Cell& cell, long long index);

// Whether what lane `other` of the caller's warp did at `clock` is ordered before now.
EMULATOR_BOOKKEEPING inline bool ordered_in_warp(const Thread& me, unsigned other_thread,
                                                 std::uint32_t clock) {
  return other_thread / 32 == me.warp->number &&
         me.warp->ordered[me.lane][other_thread % 32] > clock;
}

EMULATOR_BOOKKEEPING inline void note_shared_read(Cell& cell, long long index, long long size) {
  const Thread& me = *current_thread;
  const Block& block = *me.block;
  if (cell.write_epoch < block.first_epoch) fail_shared_uninitialised(index, size);
  if (cell.write_epoch == block.epoch && cell.writer != me.linear &&
      (cell.writer == atomic_writer || !ordered_in_warp(me, cell.writer, cell.write_clock))) {
    fail_shared_race("reads", cell, index);
  }
  if (cell.read_epoch != block.epoch) {
    cell.read_epoch = block.epoch;
    cell.read_warp = static_cast<std::uint16_t>(me.warp->number);
    cell.read_lanes = 1u << me.lane;
  } else if (cell.read_warp == me.warp->number) {
    cell.read_lanes |= 1u << me.lane;
  } else {
    cell.read_warp = several_warps;
  }
  cell.read_clock = me.warp->clock;
}

// Fails if another thread read the element in this epoch and is not ordered before.
EMULATOR_BOOKKEEPING inline void check_shared_readers(const Cell& cell, long long index) {
  const Thread& me = *current_thread;
  if (cell.read_epoch != me.block->epoch) return;
  if (cell.read_warp != me.warp->number) fail_shared_race("overwrites", cell, index);
  for (unsigned lanes = cell.read_lanes & ~(1u << me.lane); lanes != 0; lanes &= lanes - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(lanes));
    if (me.warp->ordered[me.lane][lane] <= cell.read_clock) {
      fail_shared_race("overwrites", cell, index);
    }
  }
}

EMULATOR_BOOKKEEPING inline void note_shared_write(Cell& cell, long long index, bool same_value) {
  const Thread& me = *current_thread;
  const Block& block = *me.block;
  const bool written = cell.write_epoch >= block.first_epoch;
  if (written && same_value) {
    if (cell.write_epoch == block.epoch && cell.writer != me.linear) return;
  } else {
    if (cell.write_epoch == block.epoch && cell.writer != me.linear &&
        (cell.writer == atomic_writer || !ordered_in_warp(me, cell.writer, cell.write_clock))) {
      fail_shared_race("writes", cell, index);
    }
    check_shared_readers(cell, index);
  }
  cell.write_epoch = block.epoch;
  cell.write_clock = me.warp->clock;
  cell.writer = static_cast<std::uint16_t>(me.linear);
}

EMULATOR_BOOKKEEPING inline void note_shared_atomic(Cell& cell, long long index, long long size) {
  const Thread& me = *current_thread;
  const Block& block = *me.block;
  if (cell.write_epoch < block.first_epoch) fail_shared_uninitialised(index, size);
  if (cell.write_epoch == block.epoch && cell.writer != atomic_writer && cell.writer != me.linear &&
      !ordered_in_warp(me, cell.writer, cell.write_clock)) {
    fail_shared_race("atomically changes", cell, index);
  }
  check_shared_readers(cell, index);
  cell.write_epoch = block.epoch;
  cell.writer = atomic_writer;
}

template <typename T>
struct SharedPointer {  // what &s[i] gives: for atomics
  T* address;
  Cell* cell;
  long long index;
  long long size;
};

template <typename T>
class SharedReference {
 public:
  SharedReference(T* address, Cell* cell, long long index, long long size)
      : address_(address), cell_(cell), index_(index), size_(size) {}
  SharedReference(const SharedReference&) = delete;

  operator T() && { return load(); }
  T operator=(T value) && { return store(value); }
  T operator=(SharedReference&& other) && { return store(other.load()); }
  template <typename U>
  T operator=(SharedReference<U>&& other) && {
    return store(static_cast<T>(static_cast<U>(std::move(other))));
  }
  T operator+=(T value) && { return store(static_cast<T>(load() + value)); }
  T operator-=(T value) && { return store(static_cast<T>(load() - value)); }
  T operator*=(T value) && { return store(static_cast<T>(load() * value)); }
  T operator/=(T value) && { return store(static_cast<T>(load() / value)); }
  T operator|=(T value) && { return store(static_cast<T>(load() | value)); }
  T operator&=(T value) && { return store(static_cast<T>(load() & value)); }
  T operator++() && { return store(static_cast<T>(load() + 1)); }
  T operator--() && { return store(static_cast<T>(load() - 1)); }
  SharedPointer<T> operator&() && { return {address_, cell_, index_, size_}; }

 private:
  T load() const {
    if (cell_ != nullptr) note_shared_read(*cell_, index_, size_);
    return *address_;
  }
  T store(T value) const {
    if (cell_ != nullptr) {
      note_shared_write(*cell_, index_, std::memcmp(address_, &value, sizeof(T)) == 0);
    }
    *address_ = value;
    return value;
  }

  T* address_;
  Cell* cell_;
  long long index_;
  long long size_;
};

template <typename T>
class Shared {
  static_assert(std::is_trivially_copyable_v<T>);
  using Size = long long;

 public:
  Shared() = default;

  template <typename Index>
  SharedReference<T> operator[](Index i) const {
    const Size index = static_cast<Size>(i);
    if (index < 0 || index >= size_) fail_shared_bounds(index, size_);
    return {data_ + index, cells_ == nullptr ? nullptr : cells_ + index * cells_per_element(),
            index, size_};
  }

  // Elements [offset, offset + size) as a Shared of their own.
  Shared part(Size offset, Size size) const {
    if (offset < 0 || size < 0 || offset + size > size_) fail_shared_bounds(offset + size, size_);
    Shared piece = *this;
    piece.data_ += offset;
    if (cells_ != nullptr) piece.cells_ += offset * cells_per_element();
    piece.size_ = size;
    return piece;
  }

  // `size` elements at `memory`, which lies in the block's shared memory.
  static Shared at(unsigned char* memory, Size size) {
    const Block& block = *current_thread->block;
    Shared piece;
    piece.data_ = reinterpret_cast<T*>(memory);
    piece.size_ = size;
    if (block.shared_checks) {
      const std::size_t offset = static_cast<std::size_t>(memory - block.shared);
      piece.cells_ = sizeof(T) >= 4 ? block.wide_cells + offset / 4 : block.narrow_cells + offset;
    }
    return piece;
  }

 private:
  static constexpr Size cells_per_element() {
    return sizeof(T) >= 4 ? static_cast<Size>(sizeof(T) / 4) : static_cast<Size>(sizeof(T));
  }

  T* data_ = nullptr;
  Cell* cells_ = nullptr;
  Size size_ = 0;
};

// Hands out the dynamic shared memory of the launch, piece by piece, 16-byte aligned.
class SharedArena {
 public:
  template <typename T>
  Shared<T> take(long long size) {
    const Block& block = *current_thread->block;
    const std::size_t bytes = (static_cast<std::size_t>(size) * sizeof(T) + 15) / 16 * 16;
    if (size < 0 || used_ + bytes > block.dynamic_bytes) {
      fail_in_kernel("takes %zu bytes of dynamic shared memory, the launch gave %zu", used_ + bytes,
                     block.dynamic_bytes);
    }
    Shared<T> piece = Shared<T>::at(block.shared + used_, size);
    used_ += bytes;
    return piece;
  }

 private:
  std::size_t used_ = 0;
};

template <typename T>
Shared<T> static_shared(const void* key, long long size) {
  return Shared<T>::at(static_shared(key, static_cast<std::size_t>(size) * sizeof(T), alignof(T)),
                       size);
}

}  // namespace emulator

#define CFAA_EMULATOR_SHARED_ATOMIC(name)                                          \
  template <typename T>                                                            \
  T name(emulator::SharedPointer<T> p, std::type_identity_t<T> value) {            \
    if (p.cell != nullptr) emulator::note_shared_atomic(*p.cell, p.index, p.size); \
    return name(p.address, value);                                                 \
  }
CFAA_EMULATOR_SHARED_ATOMIC(atomicAdd)
CFAA_EMULATOR_SHARED_ATOMIC(atomicMax)
CFAA_EMULATOR_SHARED_ATOMIC(atomicMin)
CFAA_EMULATOR_SHARED_ATOMIC(atomicExch)
CFAA_EMULATOR_SHARED_ATOMIC(atomicOr)
#undef CFAA_EMULATOR_SHARED_ATOMIC
