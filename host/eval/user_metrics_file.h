#pragma once

// The metrics of every user as a table: user_id, positives, then HR@5, Recall@5, ... What
// `evaluate --per-user` writes, and a run keeps of its test so that runs can be paired user by
// user.

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/data/dataset.h"
#include "host/eval/metrics.h"

namespace cfaa {

// "NDCG@10"
std::string metric_key(std::size_t metric, int64_t k);

// How such a file begins.
inline constexpr const char* kUserMetricsHeader = "user_id\tpositives";

void write_user_metrics(const std::string& path, const UserMetrics& metrics, const IdList& users);

struct UserTable {
  std::vector<std::string> columns;                            // names of the metrics
  std::unordered_map<std::string, std::vector<double>> value;  // of each user, by raw id
};

// Error naming the line where the file is not such a table.
UserTable read_user_metrics(const std::string& path);

// Each user's value of a metric, averaged over the tables (of several seeds), by raw id in order.
// Empty where there is no table, or one does not have the metric.
std::map<std::string, double> means_by_user(std::span<const UserTable> tables,
                                            const std::string& metric);

}  // namespace cfaa
