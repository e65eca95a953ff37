#include "host/device/replay.h"

#include <fmt/format.h>

#include "host/core/log.h"
#if CFAA_HAS_CUDA
#include "cuda/graph.h"
#endif

namespace cfaa {

struct Replay::State {
  Context& context;
  std::function<void()> step;
  Check check;
  bool graphs;
  std::int64_t runs = 0, captures = 0;
  std::int64_t allocations = 0;  // of the arena, at the capture
#if CFAA_HAS_CUDA
  std::unique_ptr<cuda::Graph> graph;

  void capture();
  bool checked_replay();
#endif
};

#if CFAA_HAS_CUDA
void Replay::State::capture() {
  graph = std::make_unique<cuda::Graph>(cuda::device_of(context));
  graph->capture(step);
  allocations = context.scratch().allocations();
  ++captures;
}

// The first replay of a capture; false where it does not compute what a plain run does. Nothing
// that lasts has changed then.
bool Replay::State::checked_replay() {
  graph->replay_to_boundary();
  if (const std::string differs = check.difference(); !differs.empty()) {
    log_warning(fmt::format(
        "a step replayed from CUDA graphs differs from a plain one in {}; steps run without "
        "graphs from here on, which costs speed and nothing else",
        differs));
    return false;
  }
  graph->replay_from_boundary();
  graph->join_at_boundary();
  const std::size_t graphs = graph->captured_segments();
  log_once(fmt::format(
      "steps are replayed from {} with {} library calls between them; the first replay had the "
      "bits of a plain step",
      graphs == 1 ? "one CUDA graph" : fmt::format("{} CUDA graphs", graphs),
      graph->calls_between_segments()));
  return true;
}
#endif

Replay::Replay(Context& context, std::function<void()> step, Check check, bool graphs)
    : state_(std::make_unique<State>(State{.context = context,
                                           .step = std::move(step),
                                           .check = std::move(check),
                                           .graphs = graphs})) {
  if (context.device() == DeviceKind::cuda && !graphs) log_once("steps run without CUDA graphs");
}

Replay::~Replay() = default;

void Replay::run() {
#if CFAA_HAS_CUDA
  State& s = *state_;
  if (s.context.device() == DeviceKind::cuda && s.graphs && ++s.runs > 1) {
    // Whoever frees a block of the arena asks for another.
    if (s.graph != nullptr && s.allocations == s.context.scratch().allocations()) {
      s.graph->replay();
      return;
    }
    s.check.plain();
    s.capture();
    if (s.checked_replay()) return;
    s.graph.reset();
    s.graphs = false;
  }
#endif
  state_->step();
}

void Replay::boundary() {
#if CFAA_HAS_CUDA
  if (state_->context.device() != DeviceKind::cuda) return;
  if (cuda::Graph* recorder = cuda::device_of(state_->context).recorder()) recorder->boundary();
#endif
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

std::int64_t Replay::captures() const {
  return state_->captures;
}

}  // namespace cfaa
