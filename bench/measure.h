#pragma once

// Timing a piece of work: validated first, then warmed up, then repeated (with a cold cache, where
// that is how it is met) for at least a given time. The median and the spread of the repetitions
// are kept, never the best.

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

struct Timing {
  double median = 0, low = 0, high = 0;  // seconds; low and high are the 10th and 90th percentile
  int repetitions = 0;
};

struct Plan {
  double seconds = 1;  // at least, per case
  int least_repetitions = 5;
};

// A piece of a case, timed inside it.
struct Part {
  std::string name;
  Timing timing;
};

struct Case {
  std::string name;    // "sinkhorn"
  std::string detail;  // "600 problems, K 128, 50 iterations, float"
  Work work;
  std::function<void()> run;              // one repetition, in stream order
  std::function<std::string()> validate;  // "" if the result is right, otherwise what is wrong
  // Repetitions follow each other as in use, where the next one's input is made meanwhile.
  bool back_to_back = false;
  std::function<std::vector<Part>(const Plan&)> parts = {};  // where a breakdown says something
};

// Median and percentiles of seconds.
Timing summarize(std::vector<double> times);

// Runs of `work`, each after the caches were swept unless they are back to back. On a GPU by events
// on its stream, elsewhere by the wall clock.
Timing measure(Context& context, const std::function<void()>& work, const Plan& plan,
               bool back_to_back = false);

}  // namespace cfaa::bench
