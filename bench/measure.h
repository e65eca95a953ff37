#pragma once

// Timing a piece of work: validated first, then warmed up, then repeated with a cold cache for at
// least a given time. The median and the spread of the repetitions are kept, never the best.

#include <functional>
#include <string>
#include <vector>

#include "host/core/context.h"

namespace cfaa::bench {

// What one repetition does, for rates. 0: does not apply.
struct Work {
  double bytes = 0;  // read and written, each once
  double flops = 0;  // additions and multiplications
  double exponentials = 0;
};

struct Case {
  std::string name;    // "sinkhorn"
  std::string detail;  // "600 problems, K 128, 50 iterations, float"
  Work work;
  std::function<void()> run;              // one repetition, in stream order
  std::function<std::string()> validate;  // "" if the result is right, otherwise what is wrong
};

struct Timing {
  double median = 0, low = 0, high = 0;  // seconds; low and high are the 10th and 90th percentile
  int repetitions = 0;
};

struct Plan {
  double seconds = 1;  // at least, per case
  int least_repetitions = 5;
};

// Runs of `work`, each after the caches were swept. On a GPU by events on its stream, elsewhere by
// the wall clock.
Timing measure(Context& context, const std::function<void()>& work, const Plan& plan);

}  // namespace cfaa::bench
