#pragma once

// Ctrl-C and `kill` as a wish: while a StopSignal lives, the first SIGINT, SIGTERM or SIGHUP sets a
// flag, so that long work can save what it has and say how to resume. A second one ends the process
// at once. Signals that the caller's shell told it to ignore (nohup) stay ignored.
//
//   StopSignal stop;
//   while (!done && !stop.requested()) work();
//   if (stop.requested()) save(), exit with stop.exit_code();

#include <atomic>
#include <string>

namespace cfaa {

class StopSignal {
 public:
  StopSignal();   // one at a time
  ~StopSignal();  // the signals mean again what they meant before
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  const std::atomic<bool>& requested() const;
  std::string name() const;  // "SIGINT"
  int exit_code() const;     // 128 + the signal's number, as a shell has it
};

}  // namespace cfaa
