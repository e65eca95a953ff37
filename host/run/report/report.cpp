#include "host/run/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <sstream>

#include "host/core/error.h"
#include "host/core/version.h"
#include "host/data/item_titles.h"
#include "host/eval/user_metrics_file.h"
#include "host/io/json_file.h"
#include "host/run/report/drawn_rows.h"
#include "host/run/run.h"
#include "host/run/signal_fit_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A run, or the seeds of a folder of runs.
std::vector<RunDirectory> trainings(const std::string& run) {
  const RunDirectory place(run);
  std::vector<RunDirectory> seeds = place.seeds();
  return seeds.empty() ? std::vector<RunDirectory>{place} : seeds;
}

// What metrics.jsonl says of a step, by name; a line that is cut off, as a kill may leave it, is
// passed over.
std::vector<Curve> read_curves(const std::string& run, const RunDirectory& training, int64_t seed) {
  std::map<std::string, Curve> curves;
  std::istringstream lines(read_file(training.train_files().log));
  for (std::string line; std::getline(lines, line);) {
    const json entry = parse_json(line);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number()) continue;
    for (const auto& [name, value] : entry.items()) {
      if (name.find('/') == std::string::npos || !value.is_number()) continue;
      Curve& curve = curves[name];
      curve.steps.push_back(entry["step"].get<double>());
      curve.values.push_back(value.get<double>());
    }
  }
  std::vector<Curve> result;
  for (auto& [name, curve] : curves) {
    curve.run = run;
    curve.name = name;
    curve.seed = seed;
    result.push_back(std::move(curve));
  }
  return result;
}

std::vector<Curve> all_curves(const Comparison& comparison) {
  std::vector<Curve> all;
  for (const ComparedRow& row : comparison.rows) {
    int64_t seed = 0;
    for (const RunDirectory& training : trainings(row.run)) {
      if (!fs::exists(training.train_files().log)) continue;
      for (Curve& curve : read_curves(row.run, training, seed)) all.push_back(std::move(curve));
      ++seed;
    }
  }
  return all;
}

std::vector<ShownWeights> all_weights(const Comparison& comparison) {
  std::vector<ShownWeights> all;
  for (const ComparedRow& row : comparison.rows) {
    const RunDirectory first = trainings(row.run)[0];
    if (!fs::exists(first.signals())) continue;
    const SignalFit fit = read_signal_fit(first);
    for (const std::size_t domain : {kTarget, kSource}) {
      ShownWeights shown{row.run, domain == kTarget ? "target" : "source", {}};
      for (const SignalWeight& weight : fit.weights[domain]) {
        shown.weights.emplace_back(name_of(weight.name), weight.weight);
      }
      all.push_back(std::move(shown));
    }
  }
  return all;
}

std::vector<int64_t> history_sizes(const Domain& domain) {
  std::vector<int64_t> sizes(static_cast<std::size_t>(domain.users.size()));
  for (std::size_t row = 0; row < domain.train.user.size(); ++row) {
    if (domain.train.has_label(row)) ++sizes[static_cast<std::size_t>(domain.train.user[row])];
  }
  return sizes;
}

struct Bounds {
  int64_t least, most;
  const char* name;
};
constexpr Bounds kGroups[] = {{0, 2, "up to 2 interactions"},
                              {3, 4, "3 or 4 interactions"},
                              {5, 9, "5 to 9 interactions"},
                              {10, INT64_MAX, "10 or more interactions"}};

// Each user's value of a metric, averaged over the seeds; empty where none kept it.
std::map<std::string, double> user_means(const std::string& run, const std::string& domain,
                                         const std::string& metric) {
  std::map<std::string, double> means;
  const std::vector<RunDirectory> seeds = trainings(run);
  for (const RunDirectory& seed : seeds) {
    if (!fs::exists(seed.user_metrics(domain))) return {};
    const UserTable table = read_user_metrics(seed.user_metrics(domain).string());
    const auto found = std::find(table.columns.begin(), table.columns.end(), metric);
    if (found == table.columns.end()) return {};
    const auto column = static_cast<std::size_t>(found - table.columns.begin());
    for (const auto& [user, values] : table.value) {
      means[user] += values[column] / static_cast<double>(seeds.size());
    }
  }
  return means;
}

std::vector<UserGroup> all_groups(const Comparison& comparison, const Domain& domain,
                                  const std::string& metric) {
  const std::vector<int64_t> sizes = history_sizes(domain);
  std::vector<UserGroup> all;
  for (const ComparedRow& row : comparison.rows) {
    const std::map<std::string, double> means = user_means(row.run, comparison.domain, metric);
    for (const Bounds& bounds : kGroups) {
      std::vector<double> values;
      for (const auto& [user, value] : means) {
        const int64_t index = domain.users.find(user);
        if (index < 0) continue;
        const int64_t size = sizes[static_cast<std::size_t>(index)];
        if (size >= bounds.least && size <= bounds.most) values.push_back(value);
      }
      if (values.empty()) continue;
      const MeanAndDeviation summary = mean_and_deviation(values);
      all.push_back({row.run, bounds.name, static_cast<int64_t>(values.size()), summary.mean,
                     summary.deviation / std::sqrt(static_cast<double>(values.size()))});
    }
  }
  return all;
}

std::vector<ShownItem> items_of(const SplitRows& rows, int32_t user, const Domain& domain,
                                const ItemTitles& titles) {
  std::vector<ShownItem> items;
  const auto [first, last] = std::equal_range(rows.user.begin(), rows.user.end(), user);
  for (auto at = first; at != last; ++at) {
    const auto row = static_cast<std::size_t>(at - rows.user.begin());
    if (rows.label[row] != 1) continue;
    items.push_back(
        {std::string(domain.items[rows.item[row]]), std::string(titles[rows.item[row]])});
  }
  return items;
}

std::vector<int32_t> users_with_something_held_out(const Domain& domain) {
  std::vector<int32_t> users;
  for (std::size_t row = 0; row < domain.test.user.size(); ++row) {
    if (domain.test.label[row] == 1) users.push_back(domain.test.user[row]);
  }
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

}  // namespace

Report make_report(Context& context, const ReportRequest& request) {
  if (request.metrics.empty()) throw Error("a report needs at least one metric; see --metrics");
  Report report;
  report.version = version();
  report.comparison =
      compare_runs({.runs = request.runs, .metrics = request.metrics, .domain = request.domain});
  report.curves = all_curves(report.comparison);
  report.weights = all_weights(report.comparison);

  std::vector<std::unique_ptr<RankingModel>> models;
  for (const ComparedRow& row : report.comparison.rows) {
    const RunDirectory first = trainings(row.run)[0];
    if (!is_model(first.path())) continue;
    models.push_back(open_model(context, first.path(), request.data));
    report.listed.push_back(row.run);
  }
  if (models.empty()) return report;  // scores that somebody measured: no data, no lists
  const std::size_t which = domain_index(request.domain);
  const Domain& domain = models[0]->domain(which);
  report.groups = all_groups(report.comparison, domain, request.metrics[0]);

  for (std::size_t m = 0; m < models.size(); ++m) {
    for (EmbeddingMap& map : map_embeddings(context, *models[m])) {
      map.run = report.listed[m];
      report.maps.push_back(std::move(map));
    }
  }

  const ItemTitles titles(domain);
  const std::vector<int32_t> users = users_with_something_held_out(domain);
  report.users_to_choose_from = std::ssize(users);
  RecommendRequest list = request.list;
  list.domain = request.domain;
  const KeyedDraw draw("report", domain.name, 0);
  for (const int32_t user : drawn_rows(users, domain.users, draw, request.users)) {
    ShownUser& shown = report.users.emplace_back();
    shown.user = std::string(domain.users[user]);
    shown.history = items_of(domain.train, user, domain, titles);
    shown.held_out = items_of(domain.test, user, domain, titles);
    for (const auto& model : models) {
      shown.lists.push_back(recommend(context, *model, shown.user, list));
    }
  }
  return report;
}

}  // namespace cfaa
