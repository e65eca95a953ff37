#include "host/run/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "host/core/error.h"
#include "host/eval/user_metrics_file.h"
#include "host/run/result.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

// The results of one variant: a run, or the seed-* runs of a folder.
struct Row {
  std::string name, variant, dataset;
  std::map<int64_t, MetricValues> by_seed;  // of the domain
  std::string valid_metric;
  std::vector<double> valid;     // of each seed that kept it
  bool every_seed = false;       // nothing random: the one result stands for each seed
  std::vector<UserTable> users;  // of each seed that kept them
};

const char* variant_name(Variant variant) {
  switch (variant) {
    case Variant::base:
      return "base";
    case Variant::v:
      return "v";
    case Variant::h:
      return "h";
    case Variant::full:
      return "full";
  }
  return "";
}

std::string variant_of(const RunConfig& config) {
  if (config.signals.alone()) return "signals";
  const std::string model = variant_name(config.model.losses.variant());
  return config.signals.with_model() ? "signals+" + model : model;
}

// Of the folder's name, "seed-3"; 0 where it has no number.
int64_t seed_in_name(const fs::path& place) {
  const std::string name = place.filename().string();
  return name.starts_with("seed-") ? std::atoll(name.c_str() + 5) : 0;
}

void add_result(Row& row, const RunDirectory& place, const std::string& domain) {
  const RunResult result = read_result(place);
  const auto found = result.domains.find(domain);
  if (found == result.domains.end()) {
    throw Error(
        fmt::format("{}: has no metrics of the {} domain", place.result().string(), domain));
  }
  int64_t seed = result.seed.value_or(seed_in_name(place.path()));
  std::string dataset = result.dataset;
  row.variant = result.baseline.empty() ? result.model : result.baseline;
  if (place.is_run()) {
    const RunDescription run = read_description(place);
    if (!result.seed) seed = run.config.train.seed;
    if (dataset.empty()) dataset = run.dataset;
    if (row.variant.empty()) row.variant = variant_of(run.config);
  }
  row.every_seed = result.every_seed;
  if (result.valid && (row.valid.empty() || row.valid_metric == result.metric)) {
    row.valid_metric = result.metric;
    row.valid.push_back(*result.valid);
  }
  if (!row.dataset.empty() && dataset != row.dataset) {
    throw Error(fmt::format("{}: was trained on other data than its sister seeds", place.name()));
  }
  row.dataset = dataset;
  if (!row.by_seed.emplace(seed, found->second.metrics).second) {
    throw Error(fmt::format("{}: its seed {} is there twice", place.name(), seed));
  }
  const fs::path users = place.user_metrics(domain);
  if (fs::exists(users)) row.users.push_back(read_user_metrics(users.string()));
}

Row read_row(const std::string& path, const std::string& domain) {
  Row row;
  row.name = fs::path(path).lexically_normal().string();
  while (row.name.size() > 1 && row.name.back() == '/') row.name.pop_back();
  const RunDirectory place(path);
  const std::vector<RunDirectory> seeds = place.seeds();
  for (const RunDirectory& seed : seeds) add_result(row, seed, domain);
  if (seeds.empty()) add_result(row, place, domain);
  return row;
}

double value_of(const Row& row, const MetricValues& metrics, const std::string& metric) {
  const auto found = metrics.find(metric);
  if (found != metrics.end()) return found->second;
  throw Error(fmt::format("{}: has no {}; its eval.k may leave it out, choose with --metrics",
                          row.name, metric));
}

std::vector<double> values_of(const Row& row, const std::string& metric) {
  std::vector<double> values;
  for (const auto& [seed, metrics] : row.by_seed) values.push_back(value_of(row, metrics, metric));
  return values;
}

// row - first, seed by seed where both have the seed.
std::vector<double> differences(const Row& first, const Row& row, const std::string& metric) {
  std::vector<double> result;
  const Row& leading = row.every_seed ? first : row;
  for (const auto& [seed, unused] : leading.by_seed) {
    const auto find = [seed = seed](const Row& of) {
      return of.every_seed ? of.by_seed.begin() : of.by_seed.find(seed);
    };
    const auto mine = find(row), other = find(first);
    if (mine == row.by_seed.end() || other == first.by_seed.end()) continue;
    result.push_back(value_of(row, mine->second, metric) - value_of(first, other->second, metric));
  }
  return result;
}

// A user's value of a metric, averaged over the seeds. Empty where a seed did not keep it, or the
// metric is not of users.
std::map<std::string, double> user_means(const Row& row, const std::string& metric) {
  if (row.users.size() != row.by_seed.size()) return {};
  return means_by_user(row.users, metric);
}

// row - first, user by user.
std::vector<double> user_differences(const Row& first, const Row& row, const std::string& metric) {
  const std::map<std::string, double> others = user_means(first, metric);
  std::vector<double> result;
  for (const auto& [user, value] : user_means(row, metric)) {
    const auto other = others.find(user);
    if (other != others.end()) result.push_back(value - other->second);
  }
  return result;
}

// Of the mean over the users; none for fewer than two.
std::optional<double> standard_error(const std::map<std::string, double>& means) {
  std::vector<double> values;
  for (const auto& [user, value] : means) values.push_back(value);
  if (values.size() < 2) return {};
  return mean_and_deviation(values).deviation / std::sqrt(static_cast<double>(values.size()));
}

ComparedMetric compare_metric(const Row& first, const Row& row, const std::string& metric) {
  ComparedMetric compared;
  compared.name = metric;
  compared.values = values_of(row, metric);
  compared.summary = mean_and_deviation(compared.values);
  compared.user_error = standard_error(user_means(row, metric));
  if (&row != &first) {
    compared.by_seed = paired_t_test(differences(first, row, metric));
    compared.by_user = paired_t_test(user_differences(first, row, metric));
  }
  return compared;
}

// Rows without a validation come last; nothing is sorted where they are not of one metric.
void sort_by_validation(std::vector<ComparedRow>& rows) {
  std::set<std::string> metrics;
  for (const ComparedRow& row : rows) {
    if (row.validation) metrics.insert(row.validation->name);
  }
  if (metrics.size() != 1) return;
  std::stable_sort(rows.begin(), rows.end(), [](const ComparedRow& a, const ComparedRow& b) {
    if (!a.validation || !b.validation) return a.validation.has_value() && !b.validation;
    return a.validation->summary.mean > b.validation->summary.mean;
  });
}

}  // namespace

Comparison compare_runs(const CompareRequest& request) {
  std::vector<Row> rows;
  for (const std::string& path : request.runs) {
    rows.push_back(read_row(path, request.domain));
    const Row& row = rows.back();
    if (!row.dataset.empty() && !rows[0].dataset.empty() && row.dataset != rows[0].dataset) {
      throw Error(fmt::format("{}: was trained on other data than {}; compare runs of one dataset",
                              row.name, rows[0].name));
    }
  }
  Comparison comparison{request.domain, rows.empty() ? "" : rows[0].name, {}};
  for (const Row& row : rows) {
    ComparedRow& shown = comparison.rows.emplace_back();
    shown.run = row.name;
    shown.variant = row.variant;
    for (const auto& [seed, metrics] : row.by_seed) shown.seeds.push_back(seed);
    for (const std::string& metric : request.metrics) {
      shown.metrics.push_back(compare_metric(rows[0], row, metric));
    }
    if (row.valid.size() == row.by_seed.size()) {
      shown.validation = {row.valid_metric, row.valid, mean_and_deviation(row.valid), {}, {}, {}};
    }
  }
  sort_by_validation(comparison.rows);
  return comparison;
}

}  // namespace cfaa
