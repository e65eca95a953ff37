#include "host/run/result.h"

#include "host/core/error.h"
#include "host/eval/user_metrics_file.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"
#include "host/run/run_json.h"

namespace cfaa {
namespace {

using nlohmann::json;

template <class T>
std::optional<T> optional_field(const json& object, const char* name,
                                const std::filesystem::path& path) {
  if (!object.contains(name) || object[name].is_null()) return std::nullopt;
  return field<T>(object, name, {}, path);
}

DomainResult read_domain(const json& fields, const std::filesystem::path& path) {
  DomainResult result;
  result.users = field<int64_t>(fields, "users", 0, path);
  result.positives = field<int64_t>(fields, "positives", 0, path);
  for (const auto& [key, value] : fields.items()) {
    if (key == "users" || key == "positives" || !value.is_number()) continue;
    result.metrics[key] = value.get<double>();
  }
  return result;
}

}  // namespace

MetricValues metric_values(const std::vector<MetricsAt>& metrics) {
  MetricValues values;
  for (const MetricsAt& at : metrics) {
    for (std::size_t m = 0; m < kMetrics; ++m) values[metric_key(m, at.k)] = at.value[m];
  }
  return values;
}

DomainResult domain_result(const Part& part) {
  return {part.users, part.positives, metric_values(part.metrics)};
}

RunResult read_result(const RunDirectory& run) {
  const std::filesystem::path path = run.result();
  if (!std::filesystem::exists(path)) {
    throw Error(run.name() +
                ": has no result.json; let 'cfaa_gpu train' (or 'baseline --out') finish first");
  }
  const json fields = read_json_object(path);
  RunResult result;
  result.steps = optional_field<int64_t>(fields, "steps", path);
  result.best_step = optional_field<int64_t>(fields, "best_step", path);
  result.baseline = field<std::string>(fields, "baseline", "", path);
  result.model = field<std::string>(fields, "model", "", path);
  result.seed = optional_field<int64_t>(fields, "seed", path);
  result.every_seed = field<bool>(fields, "every_seed", false, path);
  result.dataset = field<std::string>(fields, "dataset", "", path);
  result.metric = field<std::string>(fields, "metric", "", path);
  result.valid = optional_field<double>(fields, "valid", path);
  for (const char* domain : {"target", "source"}) {
    if (fields.contains(domain) && fields[domain].is_object()) {
      result.domains[domain] = read_domain(fields[domain], path);
    }
  }
  return result;
}

void write_result(const RunDirectory& run, const RunResult& result) {
  write_file(run.result().string(), to_json(result).dump(2) + "\n");
}

void write_result(const RunDirectory& place, RunResult result, const Evaluation& test,
                  const Domain& domain) {
  result.domains[domain.name] = domain_result(test.all);
  std::filesystem::create_directories(place.path());
  write_user_metrics(place.user_metrics(domain.name).string(), test.per_user, domain.users);
  write_result(place, result);
}

void check_result_place(const RunDirectory& place, bool force) {
  if (place.is_run()) {
    throw Error("--out " + place.name() +
                ": is a run, whose result would be replaced; give a directory of its own");
  }
  if (force || !std::filesystem::exists(place.result())) return;
  const RunResult there = read_result(place);
  if (there.baseline.empty() && there.model.empty()) {
    throw Error(place.result().string() +
                ": is there already and was not written by baseline or evaluate; give another "
                "--out, or replace it with --force");
  }
}

}  // namespace cfaa
