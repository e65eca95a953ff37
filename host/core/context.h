#pragma once

// The one argument that carries the device: its memory and stream, the CPU's threads, the scratch
// arena, the random numbers and the fault latch. There are no globals. A Context is used by one
// thread at a time. `make_context` in host/device/make_context.h chooses the device.

#include <cstdint>
#include <memory>
#include <utility>

#include "host/core/arena.h"
#include "host/core/device.h"
#include "host/core/fault.h"
#include "host/core/parallel.h"
#include "host/core/philox.h"

namespace cfaa {

struct ContextOptions {
  int threads = 0;    // of the CPU; 0: as many as there are cores
  uint64_t seed = 0;  // of the random numbers
};

class Context {
 public:
  explicit Context(std::unique_ptr<DeviceRuntime> runtime, ContextOptions options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  DeviceKind device() const { return runtime_->kind(); }
  DeviceRuntime& runtime() { return *runtime_; }
  ThreadPool& threads() { return threads_; }
  Arena& scratch() { return scratch_; }
  const Philox& random() const { return random_; }

  // The latch in device memory that ops set; see host/core/fault.h.
  Fault* fault_latch() { return latch_; }
  // Ops set another one from now on; returns the one before. For host/device/branch.h.
  Fault* set_fault_latch(Fault* latch) { return std::exchange(latch_, latch); }

  // Waits for the device; throws the first fault since the last call, as a sentence.
  void check_faults();

 private:
  std::unique_ptr<DeviceRuntime> runtime_;
  ThreadPool threads_;
  Arena scratch_;
  Philox random_;
  Fault* latch_;
};

}  // namespace cfaa
