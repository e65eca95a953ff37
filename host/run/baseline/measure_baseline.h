#pragma once

// A baseline made and measured in one call: `cfaa_gpu baseline`.

#include <optional>
#include <string>

#include "host/run/baseline/baselines.h"
#include "host/run/evaluate.h"
#include "host/run/result.h"

namespace cfaa {

struct BaselineRequest {
  std::string name = "popularity";  // one of baseline_names()
  bool tune = false;                // try baseline_grid on validation and take the best
  BaselineOptions options;
  EvaluationRequest evaluation;

  // True where it draws random numbers; otherwise one result stands for every seed.
  bool random() const { return name == "mf"; }
};

struct BaselineReport {
  std::string name;
  EvaluationReport evaluation;
  double train_seconds = 0;
  BaselineOptions options;      // with `tune`, those that were taken
  DomainEmbeddings embeddings;  // of mf; dim 0 for the others
  // Of mf.
  struct Training {
    int64_t seed = 0, epochs = 0, best_epoch = 0;
  };
  std::optional<Training> training;
  // With `tune`: NDCG@10 on validation of each setting, the taken one marked.
  struct Tried {
    std::string description;
    double valid = 0;
    bool taken = false;
  };
  std::vector<Tried> tried;
};

// Error where there is no baseline of that name.
BaselineReport measure_baseline(Context& context, const Domain& domain,
                                const BaselineRequest& request);

// result.json and the users' metrics in the form that a run has them, so that `compare` reads both.
// The model is kept beside (host/run/baseline/kept_baseline.h). `dataset` is the hash of the data.
void write_baseline(const RunDirectory& place, const BaselineReport& report,
                    const std::string& dataset, const Domain& domain);

}  // namespace cfaa
