#pragma once

// One protocol for every model's scores: who is ranked, over which items, and how the lists are
// measured.
//
//   full      every item, those of `masked` left out.
//   sampled   the user's held-out positives and `candidates` other items, drawn without replacement
//             from those that are neither masked nor positive (all of them where there are fewer).
//             Such metrics are biased: they can order models differently from the full ranking.

#include <cstdint>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/eval/held_out.h"
#include "host/eval/metrics.h"
#include "host/eval/scorer.h"

namespace cfaa {

struct EvaluationOptions {
  std::vector<int64_t> ks = {5, 10, 20};
  int64_t candidates = 0;       // 0: full ranking
  uint64_t candidate_seed = 0;  // of the sampled protocol
  int64_t bootstrap = 1000;     // resamples; 0: no intervals
  uint64_t bootstrap_seed = 0;
  RankingOptions ranking;  // `k` is set to the largest of ks
};

// The metrics of a part of the users or of the positives.
struct Part {
  int64_t users = 0, positives = 0;
  std::vector<MetricsAt> metrics;
};

struct Evaluation {
  Lists lists;
  UserMetrics per_user;
  Part all;
  Part cold_users;            // those without a training interaction
  Part cold_items;            // every user's positives that are cold, ranked among all items
  int64_t skipped_users = 0;  // without a held-out positive
  std::vector<std::array<Interval, kUserMetrics + 1>> intervals;  // per k; empty without bootstrap
};

Evaluation evaluate(Context& context, const Scorer& scorer, const HeldOut& held_out,
                    EvaluationOptions options);

// The items that the sampled protocol ranks for a user, ascending. `seed` and `user` alone decide.
std::vector<int32_t> sampled_items(const HeldOut& held_out, int32_t user, int64_t candidates,
                                   uint64_t seed);

}  // namespace cfaa
