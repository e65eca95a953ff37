#pragma once

// Work that may run beside other work. On a GPU the first part goes to a second stream, and what is
// queued between leave() and join() to the device's own; both begin behind what was queued before,
// and what is queued after join() begins behind both. No wait, and a step with a branch can be
// captured. On the CPU, and where a call of the captured step stands between two graphs, the parts
// run one after the other.
//
//   const Arena::Scope scope(context.scratch());  // around it: both parts' scratch lives until
//   then Branch branch(context); first(context); branch.leave(); second(context); branch.join();
//
// The results of either part are read behind join() only. Faults are those of the same work in one
// stream: the first part's before the second's.

#include <memory>

#include "host/core/context.h"

namespace cfaa {

class Branch {
 public:
  // Without `beside` the parts run one after the other.
  explicit Branch(Context& context, bool beside = true);
  ~Branch();  // joins what an exception has left apart

  void leave();
  void join();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cfaa
