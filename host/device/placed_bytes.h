#pragma once

// Host memory that a device reads in place, never writes, and of which it reads a little at a time:
// copied to the device where it has room, otherwise to pinned host memory that a GPU's kernels read
// over the bus. Both hold the same bytes, so results do not depend on where they lie.

#include <cstddef>

#include "host/core/context.h"

namespace cfaa {

enum class Placement {
  by_room,  // on the device where at least as much again stays free there
  device,
  host,
};

struct PlacedSizes {
  std::size_t device = 0, host = 0;  // bytes
};

class PlacedBytes {
 public:
  // On the CPU nothing is copied: `bytes` must outlive it.
  PlacedBytes(Context& context, const void* bytes, std::size_t count,
              Placement placement = Placement::by_room);
  ~PlacedBytes();
  PlacedBytes(const PlacedBytes&) = delete;
  PlacedBytes& operator=(const PlacedBytes&) = delete;

  const void* data() const { return data_; }
  PlacedSizes copied() const {
    return {owned_by_device_ != nullptr ? count_ : 0, owned_by_host_ != nullptr ? count_ : 0};
  }

 private:
  DeviceRuntime& runtime_;
  std::size_t count_;
  const void* data_;
  void* owned_by_device_ = nullptr;
  void* owned_by_host_ = nullptr;
};

}  // namespace cfaa
