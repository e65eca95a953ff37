#pragma once

// What the rest of the program needs to know of a device: where its memory comes from and how bytes
// get there and back. The CPU's is below; the GPU's is `cuda/device.h`, which adds a stream and the
// library handles.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cfaa {

enum class DeviceKind { cpu, cuda };

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  virtual DeviceKind kind() const = 0;

  // For people: "cpu (2 threads, AVX3)", "NVIDIA A100-SXM4-80GB", "emulated sm_80".
  virtual std::string description() const = 0;

  // Aligned to at least 256 bytes. Throws Error naming the size when there is no room.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;

  // In stream order. The host side of a copy may be reused once synchronize() has returned.
  virtual void copy_from_host(void* device, const void* host, std::size_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill_zero(void* device, std::size_t bytes) = 0;

  virtual void synchronize() = 0;

  // Host memory that is copied from while the device computes (pinned, on a GPU).
  virtual void* allocate_host(std::size_t bytes) = 0;
  virtual void release_host(void* memory) noexcept = 0;

  // A place in the stream, and waiting until the device has come that far. At most kMarks of them
  // are waited for at a time.
  static constexpr std::uint64_t kMarks = 8;
  virtual std::uint64_t mark() = 0;
  virtual void wait_for(std::uint64_t mark) = 0;

  // True where memory is watched, as on the emulated device: the arena then gives every piece a
  // buffer of its own and spoils it, so that overruns and uninitialised reads of scratch show too.
  virtual bool watches_memory() const { return false; }
  virtual void spoil(void* /*device*/, std::size_t /*bytes*/) {}
};

std::unique_ptr<DeviceRuntime> make_cpu_runtime();

}  // namespace cfaa
