#pragma once

// The `eval` section of the configuration.

#include <string>

#include "host/core/options.h"
#include "host/eval/evaluation.h"

namespace cfaa {

struct EvaluationConfig {
  std::string k = "5,10,20";
  Mask mask = Mask::automatic;
  int64_t candidates = 0;
  int64_t candidate_seed = 0;
  int64_t bootstrap = 1000;
  int64_t bootstrap_seed = 0;

  // Throws Error where `k` is not a list of whole numbers from 1 to kMaxTopK.
  EvaluationOptions options() const;
};

OptionSet evaluation_option_set(EvaluationConfig& config);

}  // namespace cfaa
