#pragma once

// result.json: how a run, a baseline or any other model did on the test split. What `compare`
// reads.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "host/eval/evaluation.h"
#include "host/run/run_directory.h"

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
  // Of a baseline: its name; its random seed, or that one result stands for every seed.
  std::string baseline;
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

}  // namespace cfaa
