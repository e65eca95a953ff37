#pragma once

// Scratch memory of a Context: taken in order, given back by scope. The first pass through a step
// finds out how much it needs; from then on the arena is one block and nothing is allocated.
//
//   Arena::Scope step(context.scratch());
//   auto psi = context.scratch().take<float, 2>({n, k});   // valid until `step` ends

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "host/core/device.h"
#include "host/core/view.h"

namespace cfaa {

class Arena {
 public:
  explicit Arena(DeviceRuntime& runtime);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Uninitialised memory of the device, aligned to 256 bytes. Only inside a Scope.
  void* take_bytes(std::size_t bytes);

  template <class T, int Rank>
  View<T, Rank> take(std::array<int64_t, Rank> shape) {
    View<T, Rank> view(nullptr, shape);
    view.data = static_cast<T*>(take_bytes(static_cast<std::size_t>(view.size()) * sizeof(T)));
    return view;
  }

  // Makes sure that `bytes` can be taken without an allocation. Outside of every Scope only.
  void reserve(std::size_t bytes);

  std::size_t peak_bytes() const { return peak_; }           // most ever in use at once
  std::int64_t allocations() const { return allocations_; }  // blocks ever asked of the device

  // While one lives, scopes that end give nothing back: the scope around it does. What is taken
  // meanwhile is used by work that runs beside other work.
  class Hold {
   public:
    explicit Hold(Arena& arena) : arena_(arena) { ++arena_.holds_; }
    ~Hold() { --arena_.holds_; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Arena& arena_;
  };

  // Gives back, at its end, what was taken since its start.
  class Scope {
   public:
    explicit Scope(Arena& arena);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    std::size_t block_, offset_, used_, pieces_;
  };

 private:
  struct Block {
    char* memory;
    std::size_t bytes;
  };

  void* take_piece(std::size_t bytes);
  void add_block(std::size_t bytes);
  void merge_blocks();

  DeviceRuntime& runtime_;
  std::vector<Block> blocks_;
  // Where the runtime watches memory: buffers in use, in the order taken, and idle ones by size.
  std::vector<Block> pieces_;
  std::map<std::size_t, std::vector<char*>> idle_pieces_;
  std::size_t block_ = 0;   // the block being filled
  std::size_t offset_ = 0;  // within that block
  std::size_t used_ = 0;    // over all blocks
  std::size_t peak_ = 0;
  int scopes_ = 0, holds_ = 0;
  std::int64_t allocations_ = 0;
};

}  // namespace cfaa
