#pragma once
// What a kernel sees while it runs on the emulated device: its indices, barriers and warp
// primitives. Each thread is a fibre; a block stays on one host thread from start to end.

#include <bit>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "vector_types.h"

namespace emulator {

struct Block;
struct Fibre;
struct Warp;

// Where a thread of the running block stands.
enum class ThreadState : std::uint8_t { unstarted, ready, at_barrier, at_warp_primitive, finished };

enum class WarpPrimitive : std::uint8_t {
  syncwarp,
  shfl,
  shfl_up,
  shfl_down,
  shfl_xor,
  ballot,
  any,
  all,
  match_any
};

struct Thread {
  uint3 index;
  unsigned linear;  // within the block, x fastest
  unsigned lane;
  Warp* warp;
  Block* block;
  Fibre* fibre;
  ThreadState state;
  // What it brought to the barrier or warp primitive it waits at, and what it takes away.
  WarpPrimitive primitive;
  unsigned mask;
  unsigned source_lane;
  std::uint64_t value;
  std::uint64_t result;
  std::source_location site;
};

// The shadow of one element of shared memory: who wrote and read it last, and when. Epochs count
// barriers of the block and never restart, so a stamp of an earlier block reads as "never".
struct Cell {
  std::uint32_t write_epoch = 0;
  std::uint32_t write_clock = 0;  // of the writer's warp
  std::uint32_t read_epoch = 0;
  std::uint32_t read_clock = 0;
  std::uint32_t read_lanes = 0;  // of read_warp
  std::uint16_t writer = 0;      // thread, or atomic_writer
  std::uint16_t read_warp = 0;   // or several_warps
};
inline constexpr std::uint16_t atomic_writer = 0xFFFF;
inline constexpr std::uint16_t several_warps = 0xFFFF;

struct Warp {
  unsigned number;
  unsigned exists;  // lanes that the block has
  unsigned finished;
  std::uint32_t clock;  // counts __syncwarp; never restarts
  // ordered[a][b]: the clock of the last __syncwarp that put b's earlier accesses before a's later
  std::uint32_t ordered[32][32];
  // Lanes waiting together: those that named the same primitive and mask.
  struct Group {
    WarpPrimitive primitive;
    unsigned mask;
    unsigned arrived;
  };
  Group groups[32];
  int group_count;
};

struct Block {
  uint3 index;
  dim3 dim;
  dim3 grid;
  const char* kernel;
  std::uint32_t first_epoch;  // of this block
  std::uint32_t epoch;        // now
  bool shared_checks;
  unsigned char* shared;  // dynamic, then static
  std::size_t dynamic_bytes;
  std::size_t static_bytes;
  std::size_t shared_limit;
  Cell* wide_cells;    // one per four bytes of shared memory, for elements of four bytes and more
  Cell* narrow_cells;  // one per byte, for smaller elements
};

extern __thread Thread* current_thread;

// Prints one line naming kernel, block and thread, and aborts.
[[noreturn, gnu::format(printf, 1, 2)]] void fail_in_kernel(const char* format, ...);

// Where the calling thread waits until the others come. `predicate` is summed over the block.
int block_barrier(int predicate, std::source_location site);

// Brings `value` to the other lanes of `mask`; the value of lane `source_lane`, or for votes the
// vote, comes back.
std::uint64_t warp_exchange(WarpPrimitive primitive, unsigned mask, std::uint64_t value,
                            unsigned source_lane, std::source_location site);

template <typename T>
T warp_shuffle(WarpPrimitive primitive, unsigned mask, T value, unsigned source_lane,
               std::source_location site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = warp_exchange(primitive, mask, bits, source_lane, site);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// Zeros a static shared variable's address space in the block, found again by `key`.
unsigned char* static_shared(const void* key, std::size_t bytes, std::size_t alignment);

}  // namespace emulator

// Set whenever another thread takes over.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
inline constexpr int warpSize = 32;

// Every primitive takes the place it is called from, for messages and to see divergent barriers.
#define CFAA_SITE std::source_location site = std::source_location::current()

inline void __syncthreads(CFAA_SITE) {
  emulator::block_barrier(0, site);
}
inline int __syncthreads_count(int predicate, CFAA_SITE) {
  return emulator::block_barrier(predicate != 0, site);
}
inline int __syncthreads_or(int predicate, CFAA_SITE) {
  return emulator::block_barrier(predicate != 0, site) != 0;
}
inline int __syncthreads_and(int predicate, CFAA_SITE) {
  return emulator::block_barrier(predicate == 0, site) == 0;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, CFAA_SITE) {
  emulator::warp_exchange(emulator::WarpPrimitive::syncwarp, mask, 0,
                          emulator::current_thread->lane, site);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, CFAA_SITE) {
  const unsigned lane = emulator::current_thread->lane;
  const unsigned first = lane & ~static_cast<unsigned>(width - 1);
  return emulator::warp_shuffle(emulator::WarpPrimitive::shfl, mask, value,
                                first + (static_cast<unsigned>(source) & (width - 1)), site);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CFAA_SITE) {
  const unsigned lane = emulator::current_thread->lane;
  const unsigned within = lane & static_cast<unsigned>(width - 1);
  return emulator::warp_shuffle(emulator::WarpPrimitive::shfl_up, mask, value,
                                within >= delta ? lane - delta : lane, site);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CFAA_SITE) {
  const unsigned lane = emulator::current_thread->lane;
  const unsigned within = lane & static_cast<unsigned>(width - 1);
  const bool inside = within + delta < static_cast<unsigned>(width);
  return emulator::warp_shuffle(emulator::WarpPrimitive::shfl_down, mask, value,
                                inside ? lane + delta : lane, site);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, CFAA_SITE) {
  const unsigned lane = emulator::current_thread->lane;
  const unsigned source = lane ^ static_cast<unsigned>(lanes);
  const unsigned first = lane & ~static_cast<unsigned>(width - 1);
  const bool inside = source < first + static_cast<unsigned>(width);
  return emulator::warp_shuffle(emulator::WarpPrimitive::shfl_xor, mask, value,
                                inside ? source : lane, site);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CFAA_SITE) {
  return static_cast<unsigned>(
      emulator::warp_exchange(emulator::WarpPrimitive::ballot, mask, predicate != 0, 0, site));
}
inline int __any_sync(unsigned mask, int predicate, CFAA_SITE) {
  return emulator::warp_exchange(emulator::WarpPrimitive::any, mask, predicate != 0, 0, site) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CFAA_SITE) {
  return emulator::warp_exchange(emulator::WarpPrimitive::all, mask, predicate != 0, 0, site) ==
         mask;
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, CFAA_SITE) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return static_cast<unsigned>(
      emulator::warp_exchange(emulator::WarpPrimitive::match_any, mask, bits, 0, site));
}
// CUDA promises no convergence, so the only lane surely active is the caller's.
inline unsigned __activemask() {
  return 1u << emulator::current_thread->lane;
}
#undef CFAA_SITE

inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
  __threadfence();
}
inline void __threadfence_system() {
  __threadfence();
}
[[noreturn]] inline void __trap() {
  emulator::fail_in_kernel("called __trap()");
}
