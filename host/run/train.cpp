#include "host/run/train.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/version.h"
#include "host/eval/user_metrics_file.h"
#include "host/run/run_directory.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The keys whose values differ, "train.epochs (50 -> 20)".
void list_differences(const json& before, const json& after, const std::string& path,
                      std::vector<std::string>& found) {
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : after.items()) {
      list_differences(before.value(key, json()), value, path.empty() ? key : path + "." + key,
                       found);
    }
    return;
  }
  if (before != after) {
    found.push_back(fmt::format("{} ({} -> {})", path, before.dump(), after.dump()));
  }
}

// Without the settings that say how a run is shown and stopped, not what it computes.
json computed(RunConfig config) {
  json fields = config.to_json();
  for (const char* key : {"epochs", "patience", "log_every", "keep_checkpoints"}) {
    fields["train"].erase(key);
  }
  fields.erase("eval");
  return fields;
}

// True where a directory holds something that is not ours: more than what a run leaves that was
// killed while it wrote its first file, run.json.
bool holds_other_files(const fs::path& directory) {
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(directory, absent)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("run.json.") || !name.ends_with(".tmp")) return true;
  }
  return false;
}

void check_same_run(const RunDirectory& run, const RunDescription& before,
                    const RunDescription& now) {
  if (before.dataset != now.dataset) {
    throw Error(
        fmt::format("{}: was trained on other data ({}); start over with --fresh, or give "
                    "another --out",
                    run.name(), before.data));
  }
  std::vector<std::string> differences;
  list_differences(computed(before.config), computed(now.config), "", differences);
  if (!differences.empty()) {
    throw Error(
        fmt::format("{}: was started with other settings: {}; start over with --fresh, or "
                    "give another --out",
                    run.name(), fmt::join(differences, ", ")));
  }
}

// Makes the run's directory, or checks that it holds this very run.
void open_run(const RunDirectory& run, const TrainingSet& data, const TrainRequest& request) {
  const RunDescription now{request.config,
                           fs::absolute(data.directory()).lexically_normal().string(),
                           data.dataset().hash, version()};
  if (request.fresh) {
    for (const std::string& name : RunDirectory::file_names()) fs::remove_all(run.path() / name);
  }
  if (run.is_run()) {
    check_same_run(run, read_description(run), now);
  } else {
    if (holds_other_files(run.path()) && !request.fresh) {
      throw Error(run.name() + ": is there and holds no run; give another --out");
    }
    fs::create_directories(run.path());
  }
  write_description(run, now);
}

RunResult result_of(const TrainOutcome& outcome, const RunConfig& config) {
  RunResult result;
  result.steps = outcome.steps;
  result.best_step = outcome.best_step;
  result.metric = config.train.metric;
  result.valid = outcome.valid;
  result.domains["target"] = domain_result(outcome.test[kTarget].all);
  result.domains["source"] = domain_result(outcome.test[kSource].all);
  return result;
}

}  // namespace

TrainingSet::TrainingSet(const fs::path& directory, const ModelOptions& model)
    : directory_(directory),
      dataset_(load_dataset(directory)),
      data_(load_training_data(dataset_, model)) {}

TrainedRun train_run(Context& context, const TrainingSet& data, const TrainRequest& request) {
  request.config.check();
  const RunDirectory run(request.out);
  open_run(run, data, request);
  const TrainOutcome outcome =
      train(context, data.data(), request.config,
            {run.train_files(), request.from, request.trace, request.trace_steps, request.stop});
  if (outcome.stopped) return {true, outcome.steps, {}};
  for (const std::size_t d : {kTarget, kSource}) {
    const Domain& domain = data.data().domain(d);
    write_user_metrics(run.user_metrics(domain.name).string(), outcome.test[d].per_user,
                       domain.users);
  }
  const RunResult result = result_of(outcome, request.config);
  write_result(run, result);
  return {false, outcome.steps, result};
}

}  // namespace cfaa
