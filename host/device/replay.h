#pragma once

// A step that is queued again and again. On a GPU the first run is an ordinary one (the arena
// settles), the second is captured, and from then on a run is a replay of the captured graphs
// (cuda/graph.h): the step must find whatever changes in device memory. On the CPU every run is a
// call.

#include <functional>
#include <memory>

#include "host/core/context.h"

namespace cfaa {

class Replay {
 public:
  Replay(Context& context, std::function<void()> step);
  ~Replay();

  void run();

  // Graphs launched and library calls made between them by a replay; 0 before the capture.
  std::size_t captured_segments() const;
  std::size_t calls_between_segments() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
