#pragma once

// Variants and seeds in one table, each row tested against the first.

#include <optional>
#include <string>
#include <vector>

#include "host/eval/significance.h"

namespace cfaa {

struct CompareRequest {
  std::vector<std::string>
      runs;  // directories: a run, or a folder of seed-* runs, which is one row
  std::vector<std::string> metrics = {"HR@10", "Recall@10", "NDCG@10", "MRR@10"};
  std::string domain = "target";
};

struct ComparedMetric {
  std::string name;            // "NDCG@10"
  std::vector<double> values;  // by seed
  MeanAndDeviation summary;
  // Against the first row, of which there are none: seed by seed, and user by user averaged over
  // the seeds. No pairs where seeds are not in common, or the users' metrics were not kept.
  std::optional<PairedTest> by_seed, by_user;
};

struct ComparedRow {
  std::string run, variant;
  std::vector<int64_t> seeds;
  std::vector<ComparedMetric> metrics;  // as in the request
};

struct Comparison {
  std::string domain;
  std::vector<ComparedRow> rows;
};

// Error where one has no result, lacks a metric, or was trained on other data than the first.
Comparison compare_runs(const CompareRequest& request);

}  // namespace cfaa
