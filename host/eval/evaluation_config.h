#pragma once

// The `eval` section of the configuration.

#include <cstdint>
#include <vector>

#include "host/core/options.h"
#include "host/eval/evaluation.h"

namespace cfaa {

struct EvaluationConfig {
  std::vector<int64_t> k = {5, 10, 20};
  Mask mask = Mask::automatic;
  int64_t candidates = 0;
  int64_t candidate_seed = 0;
  int64_t bootstrap = 1000;
  int64_t bootstrap_seed = 0;

  // Throws Error where `k` is empty.
  EvaluationOptions options() const;
};

OptionSet evaluation_option_set(EvaluationConfig& config);

}  // namespace cfaa
