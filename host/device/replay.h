#pragma once

// A step that is queued again and again. On a GPU the first run is an ordinary one (the arena
// settles), the second is captured, and from then on a run is a replay of the captured graphs
// (cuda/graph.h): the step must find whatever changes in device memory. Where the arena asked for
// memory since (an evaluation between two epochs may), the addresses in the graphs may be those of
// freed memory: the step is captured again. On the CPU every run is a call.
//
// That a capture succeeded does not make it right. So the first replay of each is compared with a
// plain run, up to the boundary behind which the step changes what it starts from. Where they
// differ the log says so, and all runs are plain from then on.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "host/core/context.h"

namespace cfaa {

class Replay {
 public:
  // Compares what the step has computed at its boundary. Both may wait for the device.
  struct Check {
    std::function<void()> plain;              // runs the step up to its boundary, keeps the results
    std::function<std::string()> difference;  // between those and the device's: "", or what differs
  };

  // With `graphs` false every run is a call.
  Replay(Context& context, std::function<void()> step, Check check, bool graphs = true);
  ~Replay();

  void run();

  // Called by the step once, in front of what changes the state it started from.
  void boundary();

  // Graphs launched and library calls made between them by a replay; 0 before the capture.
  std::size_t captured_segments() const;
  std::size_t calls_between_segments() const;
  std::int64_t captures() const;  // so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
