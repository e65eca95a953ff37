#include "host/device/replay.h"

#if CFAA_HAS_CUDA
#include "cuda/graph.h"
#endif

namespace cfaa {

struct Replay::State {
  Context& context;
  std::function<void()> step;
  int runs = 0;
#if CFAA_HAS_CUDA
  std::unique_ptr<cuda::Graph> graph;
#endif
};

Replay::Replay(Context& context, std::function<void()> step)
    : state_(std::make_unique<State>(State{context, std::move(step)})) {}

Replay::~Replay() = default;

void Replay::run() {
#if CFAA_HAS_CUDA
  if (state_->context.device() == DeviceKind::cuda && ++state_->runs > 1) {
    if (state_->graph == nullptr) {
      state_->graph = std::make_unique<cuda::Graph>(cuda::device_of(state_->context));
      state_->graph->capture(state_->step);
    }
    state_->graph->replay();
    return;
  }
#endif
  state_->step();
}

std::size_t Replay::captured_segments() const {
#if CFAA_HAS_CUDA
  if (state_->graph != nullptr) return state_->graph->captured_segments();
#endif
  return 0;
}

std::size_t Replay::calls_between_segments() const {
#if CFAA_HAS_CUDA
  if (state_->graph != nullptr) return state_->graph->calls_between_segments();
#endif
  return 0;
}

}  // namespace cfaa
