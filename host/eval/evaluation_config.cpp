#include "host/eval/evaluation_config.h"

#include <algorithm>

#include "host/core/error.h"
#include "host/ops/top_k.h"

namespace cfaa {

EvaluationOptions EvaluationConfig::options() const {
  EvaluationOptions options;
  if (k.empty()) throw Error("eval.k is empty; give lengths of lists, such as 5,10,20");
  options.ks = k;
  std::sort(options.ks.begin(), options.ks.end());
  options.ks.erase(std::unique(options.ks.begin(), options.ks.end()), options.ks.end());
  options.candidates = candidates;
  options.candidate_seed = static_cast<uint64_t>(candidate_seed);
  options.bootstrap = bootstrap;
  options.bootstrap_seed = static_cast<uint64_t>(bootstrap_seed);
  return options;
}

OptionSet evaluation_option_set(EvaluationConfig& config) {
  OptionSet set("eval");
  set.add("k", config.k, "lengths of the lists to measure", between(1, kMaxTopK));
  set.add("mask", config.mask,
          "whose items a user is not recommended; auto: training items, and validation items when "
          "testing",
          {{"auto", Mask::automatic},
           {"train", Mask::train},
           {"train+valid", Mask::train_valid},
           {"none", Mask::none}});
  set.add("candidates", config.candidates,
          "sampled protocol: items drawn per user beside the positives; 0: rank all items",
          between(0, 1e9));
  set.add("candidate_seed", config.candidate_seed, "random seed of the sampled protocol's draws",
          between(0, 9e18));
  set.add("bootstrap", config.bootstrap, "resamples for the 95 % intervals; 0: none",
          between(0, 1e6));
  set.add("bootstrap_seed", config.bootstrap_seed, "random seed of the resamples",
          between(0, 9e18));
  return set;
}

}  // namespace cfaa
