#pragma once

// A baseline made and measured in one call: `cfaa_gpu baseline`.

#include <optional>
#include <string>

#include "host/run/baselines.h"
#include "host/run/evaluate.h"
#include "host/run/result.h"

namespace cfaa {

struct BaselineRequest {
  std::string name = "popularity";  // popularity, itemknn or mf
  BaselineOptions options;
  EvaluationRequest evaluation;

  // True where it draws random numbers; otherwise one result stands for every seed.
  bool random() const { return name == "mf"; }
};

struct BaselineReport {
  std::string name;
  EvaluationReport evaluation;
  double train_seconds = 0;
  // Of mf.
  struct Training {
    int64_t seed = 0, epochs = 0, best_epoch = 0;
    double valid = 0;  // NDCG@10 of the best epoch
  };
  std::optional<Training> training;
};

// Error where the name is none of the three.
BaselineReport measure_baseline(Context& context, const Domain& domain,
                                const BaselineRequest& request);

// Error where `place` is a run, or holds a result that no baseline wrote, unless `force`.
void check_baseline_place(const RunDirectory& place, bool force);

// result.json and the users' metrics in the form that a run has them, so that `compare` reads both.
// `dataset` is the hash of the data.
void write_baseline(const RunDirectory& place, const BaselineReport& report,
                    const std::string& dataset, const Domain& domain);

}  // namespace cfaa
