#pragma once

// result.json: how a run, a baseline or any other model did on the test split. What `compare`
// reads.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "host/data/dataset.h"
#include "host/eval/evaluation.h"
#include "host/run/directory/run_directory.h"

namespace cfaa {

// "NDCG@10": value.
using MetricValues = std::map<std::string, double>;
MetricValues metric_values(const std::vector<MetricsAt>& metrics);

struct DomainResult {
  int64_t users = 0, positives = 0;  // that were ranked, to be found
  MetricValues metrics;
};
DomainResult domain_result(const Part& part);

struct RunResult {
  // Of a run.
  std::optional<int64_t> steps, best_step;
  // Of a baseline its name, of scores that `evaluate --out` measured what they are called; the
  // random seed, or that one result stands for every seed.
  std::string baseline, model;
  std::optional<int64_t> seed;
  bool every_seed = false;
  std::string dataset;  // hash of the data; "": as run.json says
  // The validation that chose the parameters.
  std::string metric;
  std::optional<double> valid;
  std::map<std::string, DomainResult> domains;  // "target", "source"
};

// Error where there is none, or it does not read.
RunResult read_result(const RunDirectory& run);
void write_result(const RunDirectory& run, const RunResult& result);

// A domain's results with its users' metrics in the form that a run has them, so that `compare`
// reads both.
void write_result(const RunDirectory& place, RunResult result, const Evaluation& test,
                  const Domain& domain);

// Error where `place` is a run, or holds a result that neither `baseline` nor `evaluate` wrote,
// unless `force`.
void check_result_place(const RunDirectory& place, bool force);

}  // namespace cfaa
