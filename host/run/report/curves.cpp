#include "host/run/report/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "host/core/error.h"
#include "host/io/json_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What metrics.jsonl says of a step, by name; a line that is cut off, as a kill may leave it, is
// passed over.
std::vector<Curve> read_log(const std::string& run, const RunDirectory& training) {
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
  const int64_t seed = read_description(training).config.train.seed;
  std::vector<Curve> result;
  for (auto& [name, curve] : curves) {
    curve.run = run;
    curve.name = name;
    curve.seed = seed;
    result.push_back(std::move(curve));
  }
  return result;
}

// The configuration without seed and without the two weights.
std::string rest_of(RunConfig config) {
  config.train.seed = 0;
  for (const char* loss : {"vertical", "horizontal"}) {
    config.model.losses.term(loss).weight = 0;
    config.model.losses.term(loss).left_out = false;
  }
  return config.to_json().dump();
}

struct Swept {
  RunConfig config;
  const ComparedRow* row;

  double weight(const char* loss) const {
    const LossTerm& term = config.model.losses.term(loss);
    return term.used() ? term.weight : 0;
  }
};

std::vector<Sweep> sweeps_over(const char* loss, const char* other,
                               const std::vector<Swept>& runs) {
  std::map<std::pair<std::string, double>, std::map<double, const Swept*>> groups;
  for (const Swept& run : runs) {
    groups[{rest_of(run.config), run.weight(other)}].emplace(run.weight(loss), &run);
  }
  std::vector<Sweep> sweeps;
  for (const auto& [group, points] : groups) {
    if (points.size() < 2) continue;
    const ComparedRow& first = *points.begin()->second->row;
    Sweep& sweep = sweeps.emplace_back();
    sweep.loss = loss;
    sweep.other = group.second;
    sweep.metric = first.metrics[0].name;
    if (first.validation) sweep.valid_metric = first.validation->name;
    for (const auto& [weight, run] : points) {
      sweep.points.push_back({weight, run->row->run, {}, run->row->metrics[0].values});
      if (run->row->validation) sweep.points.back().valid = run->row->validation->values;
    }
  }
  return sweeps;
}

}  // namespace

std::vector<RunDirectory> trainings(const std::string& run) {
  const RunDirectory place(run);
  std::vector<RunDirectory> seeds = place.seeds();
  return seeds.empty() ? std::vector<RunDirectory>{place} : seeds;
}

std::vector<Curve> read_curves(const Comparison& comparison) {
  std::vector<Curve> all;
  for (const ComparedRow& row : comparison.rows) {
    for (const RunDirectory& training : trainings(row.run)) {
      if (!training.is_run() || !fs::exists(training.train_files().log)) continue;
      for (Curve& curve : read_log(row.run, training)) all.push_back(std::move(curve));
    }
  }
  return all;
}

std::vector<Sweep> read_sweeps(const std::string& folder, const CompareRequest& request) {
  if (!fs::is_directory(folder)) throw Error(fmt::format("{}: is not a folder of runs", folder));
  CompareRequest inside{{}, {request.metrics[0]}, request.domain};
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && trainings(entry.path().string())[0].is_run()) {
      inside.runs.push_back(entry.path().string());
    }
  }
  std::sort(inside.runs.begin(), inside.runs.end());
  if (inside.runs.empty()) throw Error(fmt::format("{}: holds no runs", folder));
  // Refuses runs of other data.
  compare_runs({{request.runs[0], inside.runs[0]}, inside.metrics, request.domain});
  const Comparison comparison = compare_runs(inside);
  std::vector<Swept> runs;
  for (const ComparedRow& row : comparison.rows) {
    runs.push_back({read_description(trainings(row.run)[0]).config, &row});
  }
  std::vector<Sweep> sweeps = sweeps_over("vertical", "horizontal", runs);
  for (Sweep& sweep : sweeps_over("horizontal", "vertical", runs))
    sweeps.push_back(std::move(sweep));
  if (sweeps.empty()) {
    throw Error(
        fmt::format("{}: no two of its runs are alike but for losses.vertical.weight or "
                    "losses.horizontal.weight; train some with --set and --out {}/NAME",
                    folder, folder));
  }
  return sweeps;
}

}  // namespace cfaa
