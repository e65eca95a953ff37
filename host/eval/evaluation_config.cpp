#include "host/eval/evaluation_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "host/core/error.h"
#include "host/ops/top_k.h"

namespace cfaa {
namespace {

std::vector<int64_t> parse_ks(const std::string& text) {
  std::vector<int64_t> ks;
  const char* at = text.data();
  const char* end = at + text.size();
  for (;;) {
    int64_t k = 0;
    const auto [next, failure] = std::from_chars(at, end, k);
    if (failure != std::errc() || k < 1 || k > kMaxTopK || (next != end && *next != ',')) {
      throw Error(fmt::format("--k {}: is not a list of whole numbers from 1 to {} such as 5,10,20",
                              text, kMaxTopK));
    }
    ks.push_back(k);
    if (next == end) break;
    at = next + 1;
  }
  std::sort(ks.begin(), ks.end());
  ks.erase(std::unique(ks.begin(), ks.end()), ks.end());
  return ks;
}

}  // namespace

EvaluationOptions EvaluationConfig::options() const {
  EvaluationOptions options;
  options.ks = parse_ks(k);
  options.candidates = candidates;
  options.candidate_seed = static_cast<uint64_t>(candidate_seed);
  options.bootstrap = bootstrap;
  options.bootstrap_seed = static_cast<uint64_t>(bootstrap_seed);
  return options;
}

OptionSet evaluation_option_set(EvaluationConfig& config) {
  OptionSet set("eval");
  set.add("k", config.k, "lengths of the lists to measure, such as 5,10,20");
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
