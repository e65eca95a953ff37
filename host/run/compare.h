#pragma once

// Variants and seeds in one table, each row tested against the first that was asked for. Rows are
// sorted by the validation that chose their parameters: the test split is for reporting, and
// whoever chooses by it reports too much.

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
  // Of the mean over the users, each averaged over the seeds, where their metrics were kept: 1.96
  // times it to both sides is an interval of 95 %.
  std::optional<double> user_error;
  // Against the reference, which itself has none: seed by seed, and user by user averaged over the
  // seeds. No pairs where seeds are not in common, or the users' metrics were not kept.
  std::optional<PairedTest> by_seed, by_user;
};

struct ComparedRow {
  std::string run, variant;
  std::vector<int64_t> seeds;
  std::optional<ComparedMetric> validation;  // where every seed kept it
  std::vector<ComparedMetric> metrics;       // of the test, as in the request
};

struct Comparison {
  std::string domain;
  std::string reference;          // the first run of the request
  std::vector<ComparedRow> rows;  // the best validation first; in the order asked for where there
                                  // is none, or not of one metric
};

// Error where one has no result, lacks a metric, or was trained on other data than the first.
Comparison compare_runs(const CompareRequest& request);

}  // namespace cfaa
