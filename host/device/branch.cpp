#include "host/device/branch.h"

#include <optional>

#include "host/core/error.h"
#if CFAA_HAS_CUDA
#include "cuda/faults.h"
#include "cuda/graph.h"
#include "cuda/stream.h"
#endif

namespace cfaa {

struct Branch::State {
  enum class At { first, second, joined };

  explicit State(Context& where) : context(where) {}

  Context& context;
  At at = At::first;
  std::optional<Arena::Hold> hold;
#if CFAA_HAS_CUDA
  cuda::Device* device = nullptr;  // null: one after the other
  cuda::Event forked, done;
  Fault* latch = nullptr;  // of the device's own stream
  Fault* branch_latch = nullptr;
#endif
};

Branch::Branch(Context& context, [[maybe_unused]] bool beside)
    : state_(std::make_unique<State>(context)) {
#if CFAA_HAS_CUDA
  if (!beside || context.device() == DeviceKind::cpu) return;
  State& s = *state_;
  cuda::Device& device = cuda::device_of(context);
  CFAA_ASSERT(device.lane() == 0);
  const cuda::Graph* recorder = device.recorder();
  if (recorder != nullptr && !recorder->is_whole()) return;
  s.device = &device;
  s.branch_latch = context.scratch().take<Fault, 1>({1}).data;
  device.copy(s.branch_latch, context.fault_latch(), sizeof(Fault));
  s.forked.record(device.stream());
  device.use_lane(1);
  s.forked.hold(device.stream());
  s.latch = context.set_fault_latch(s.branch_latch);
  s.hold.emplace(context.scratch());
#endif
}

void Branch::leave() {
  State& s = *state_;
  CFAA_ASSERT(s.at == State::At::first);
  s.at = State::At::second;
#if CFAA_HAS_CUDA
  if (s.device == nullptr) return;
  s.done.record(s.device->stream());
  s.device->use_lane(0);
  s.context.set_fault_latch(s.latch);
  s.hold.reset();
#endif
}

void Branch::join() {
  State& s = *state_;
  if (s.at == State::At::first) leave();
  CFAA_ASSERT(s.at == State::At::second);
  s.at = State::At::joined;
#if CFAA_HAS_CUDA
  if (s.device == nullptr) return;
  s.done.hold(s.device->stream());
  cuda::join_faults(*s.device, s.branch_latch, s.latch);
#endif
}

Branch::~Branch() {
  if (state_->at == State::At::joined) return;
  try {
    join();
  } catch (const Error&) {
    // A capture that was refused: its graph is dropped.
  }
}

}  // namespace cfaa
