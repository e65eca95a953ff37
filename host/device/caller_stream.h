#pragma once

// Work for somebody who queues on a stream of their own, as PyTorch does. Events put both in order,
// and the host waits for neither:
//
//   CallerStream caller(context);
//   caller.run(stream, [&] { vertical_loss(...); });  // behind what `stream` holds, and before
//                                                     // what is queued on it from now on
//
// On the CPU the work is a call, and what it meets is thrown at once.

#include <array>
#include <cstdint>
#include <functional>

#include "host/core/context.h"

namespace cfaa {

class CallerStream {
 public:
  explicit CallerStream(Context& context);
  ~CallerStream();
  CallerStream(const CallerStream&) = delete;
  CallerStream& operator=(const CallerStream&) = delete;

  // `stream` is a cudaStream_t of the context's GPU as an integer; 0 is the default stream. `work`
  // queues ops of the context. What they meet on a GPU (host/core/fault.h) is thrown by check(), or
  // by a later run: at most DeviceRuntime::kMarks runs are queued behind one that was not looked
  // at.
  void run(std::uintptr_t stream, const std::function<void()>& work);

  // Waits for all runs; throws the first fault.
  void check();

 private:
  static constexpr std::uint64_t kRuns = DeviceRuntime::kMarks;

  void look_at_the_oldest();

  Context& context_;
  Fault* faults_;  // (kRuns) host memory: what the latch held behind run i, at i % kRuns
  std::array<std::uint64_t, kRuns> marks_{};
  std::uint64_t runs_ = 0, looked_at_ = 0;
};

}  // namespace cfaa
