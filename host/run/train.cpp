#include "host/run/train.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "host/core/error.h"
#include "host/core/version.h"
#include "host/eval/user_metrics_file.h"
#include "host/run/directory/run_lock.h"
#include "host/run/signal_fit_file.h"

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
  for (const char* key : {"epochs", "steps", "patience", "patience_steps", "min_steps", "log_every",
                          "keep_checkpoints"}) {
    fields["train"].erase(key);
  }
  fields.erase("eval");
  return fields;
}

void check_same_run(const RunDirectory& run, const RunDescription& before,
                    const RunDescription& now) {
  if (before.dataset != now.dataset) {
    throw Error(
        fmt::format("{}: was trained on other data ({}); start over with --fresh, or give "
                    "another --out",
                    run.name(), before.data));
  }
  const std::string embeddings = embedding_difference(before.embeddings, now.embeddings);
  if (!embeddings.empty()) {
    throw Error(
        fmt::format("{}: was started on other review embeddings: {}; embed as it was, start over "
                    "with --fresh, or give another --out",
                    run.name(), embeddings));
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

// The directory of a run that is about to be trained, held by this process. Everything is checked
// before anything is touched; where training does not begin after all, what was there is put back.
class OpenedRun {
 public:
  OpenedRun(const RunDirectory& run, const RunDescription& description, bool fresh)
      : run_(run), description_(description) {
    check_place(fresh);
    made_ = make_directories(run_.path());
    lock_.emplace(run_.path());
    was_run_ = run_.is_run();
    try {
      if (was_run_ && !fresh) check_same_run(run_, read_description(run_), description_);
      if (was_run_ && fresh) set_aside();
      run_.sweep();
      write_description(run_, description_);
    } catch (...) {
      put_back();
      throw;
    }
  }

  // Where training has not begun, nothing is left behind.
  void put_back() {
    if (began()) return;
    std::error_code ignored;
    if (aside_ || !made_.empty()) {
      lock_.reset();
      fs::remove_all(run_.path(), ignored);
      for (const fs::path& folder : made_) fs::remove(folder, ignored);
      if (aside_) fs::rename(run_.replaced(), run_.path());
    } else if (!was_run_) {
      fs::remove(run_.description(), ignored);
      fs::remove(run_.signals(), ignored);
      fs::remove(run_.train_files().checkpoints, ignored);  // where it is empty
    }
  }

  // It has finished: the run that it replaces goes.
  void finish() {
    const RunDirectory old(run_.replaced());
    if (!old.is_run() || !old.foreign_entry().empty()) return;
    fs::remove_all(old.path());
  }

 private:
  // The log is opened last, when everything else stands.
  bool began() const { return fs::exists(run_.train_files().log); }

  void check_place(bool fresh) const {
    if (run_.is_run()) {
      const std::string other = run_.foreign_entry();
      if (!fresh || other.empty()) return;
      throw Error(
          fmt::format("{}: --fresh replaces a run and nothing else, and '{}' is not a run's; move "
                      "it away, or give another --out",
                      run_.name(), other));
    }
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(run_.path(), absent)) {
      const std::string name = entry.path().filename().string();
      // What a run leaves that was killed while it wrote its first file.
      if (entry.path() == run_.lock() ||
          (name.starts_with("run.json.") && name.ends_with(".tmp"))) {
        continue;
      }
      throw Error(fmt::format("{}: is there and holds no run, but '{}'; give another --out",
                              run_.name(), name));
    }
  }

  // Makes the folder and those above it; which of them were made, innermost first.
  static std::vector<fs::path> make_directories(const fs::path& path) {
    std::vector<fs::path> made;
    for (fs::path folder = fs::absolute(path).lexically_normal(); !fs::exists(folder);
         folder = folder.parent_path()) {
      if (folder.has_filename()) made.push_back(folder);
    }
    fs::create_directories(path);
    return made;
  }

  // Keeps the run until this one has finished. One that never finished is not worth keeping beside
  // the finished one that it was to replace.
  void set_aside() {
    const fs::path place = run_.replaced();
    if (fs::exists(place) && !fs::exists(run_.result())) {
      fs::remove_all(run_.path());
    } else {
      fs::remove_all(place);
      fs::rename(run_.path(), place);
    }
    aside_ = true;
    fs::create_directory(run_.path());
    lock_.emplace(run_.path());
  }

  RunDirectory run_;
  RunDescription description_;
  std::vector<fs::path> made_;
  std::optional<RunLock> lock_;
  bool was_run_ = false, aside_ = false;
};

RunResult result_of(const TrainOutcome& outcome, const RunConfig& config) {
  RunResult result;
  result.steps = outcome.steps;
  result.best_step = outcome.best_step;
  result.metric = config.train.metric;
  result.valid = outcome.valid;
  result.domains["target"] = domain_result(outcome.test[kTarget].all);
  if (config.train.uses(kSource)) {
    result.domains["source"] = domain_result(outcome.test[kSource].all);
  }
  return result;
}

// Signals with frozen weights, on top of which a model is trained.
class FrozenSignals {
 public:
  FrozenSignals(Context& context, const ReviewedData& data, const RunConfig& config,
                const SignalFit& fit) {
    for (const std::size_t d : {kSource, kTarget}) {
      if (!config.train.uses(d)) continue;
      // What has no weight need not be made in every fold.
      std::vector<SignalName> names;
      std::vector<double> weights;
      for (const SignalWeight& w : fit.weights[d]) {
        if (w.weight == 0) continue;
        names.push_back(w.name);
        weights.push_back(w.weight);
      }
      offsets_[d] = std::make_unique<FoldOffsets>(context, data.domain(d), names, weights,
                                                  config.signals.signal(), config.signals.fold());
      model_[d] = std::make_unique<SignalModel>(context, data, d, config.signals, fit.weights[d]);
      base_.offsets[d] = offsets_[d].get();
      base_.scores[d] = &model_[d]->scores();
    }
  }

  const ResidualBase& base() const { return base_; }

 private:
  PerDomain<std::unique_ptr<FoldOffsets>> offsets_;
  PerDomain<std::unique_ptr<SignalModel>> model_;
  ResidualBase base_;
};

// The weights of a run's signals: those that it has found already, where it resumes.
SignalFit weigh_signals(Context& context, const ReviewedData& data, const RunDirectory& run,
                        const SignalsOptions& options) {
  if (fs::exists(run.signals())) return read_signal_fit(run);
  const SignalFit fit = fit_signals(context, data, options);
  write_signal_fit(run, fit);
  return fit;
}

// The weights that the first rank has, to all.
void share_weights(Context& context, Group& group, SignalFit& fit) {
  for (std::vector<SignalWeight>& weights : fit.weights) {
    weights.resize(gather_values(context, group, weights.size())[0]);
    for (SignalWeight& weight : weights) weight = gather_values(context, group, weight)[0];
  }
}

}  // namespace

TrainingSet::TrainingSet(const fs::path& directory, const ModelOptions& model)
    : directory_(directory),
      dataset_(load_dataset(directory)),
      data_(load_training_data(dataset_, model)) {
  embeddings_ = embedding_identity(dataset_, model);
}

TrainedRun train_run(Context& context, const TrainingSet& data, const TrainRequest& request) {
  request.config.check();
  const std::unique_ptr<Group> alone = make_group_of_one();
  Group& group = request.group == nullptr ? *alone : *request.group;
  const RunDirectory run(request.out);
  RunDescription description{request.config,
                             fs::absolute(data.directory()).lexically_normal().string(),
                             data.dataset().hash, version(), data.embeddings()};
  std::optional<ReviewedData> reviewed;
  if (request.config.signals.with_model()) {
    reviewed.emplace(context, data.dataset());
    if (reviewed->has_vectors()) description.embeddings.merge(embedding_identity(data.dataset()));
  }
  std::optional<OpenedRun> opened;
  if (group.is_first()) opened.emplace(run, description, request.fresh);
  TrainOutcome outcome;
  SignalFit fit;
  try {
    TrainerRequest training{run.train_files(),   request.from,   request.trace,
                            request.trace_steps, request.graphs, request.stop,
                            request.metrics,     nullptr,        &group};
    std::optional<FrozenSignals> signals;
    if (reviewed) {
      if (opened) fit = weigh_signals(context, *reviewed, run, request.config.signals);
      share_weights(context, group, fit);
      training.base = &signals.emplace(context, *reviewed, request.config, fit).base();
    }
    outcome = train(context, data.data(), request.config, training);
  } catch (...) {
    if (opened) opened->put_back();
    throw;
  }
  if (outcome.stopped) return {true, outcome.steps, {}};
  const RunResult result = result_of(outcome, request.config);
  if (!opened) return {false, outcome.steps, result};
  if (reviewed) {
    fit.residual = outcome.share;
    write_signal_fit(run, fit);
  }
  for (const std::size_t d : {kTarget, kSource}) {
    if (!request.config.train.uses(d)) continue;
    const Domain& domain = data.data().domain(d);
    write_user_metrics(run.user_metrics(domain.name).string(), outcome.test[d].per_user,
                       domain.users);
  }
  write_result(run, result);
  opened->finish();
  return {false, outcome.steps, result};
}

TrainedRun train_signals(Context& context, const fs::path& data, const TrainRequest& request) {
  request.config.check();
  const Dataset dataset = load_dataset(data);
  const ReviewedData reviewed(context, dataset);
  const RunDirectory run(request.out);
  RunDescription description{
      request.config, fs::absolute(data).lexically_normal().string(), dataset.hash, version(), {}};
  if (reviewed.has_vectors()) description.embeddings = embedding_identity(dataset);
  OpenedRun opened(run, description, request.fresh);
  SignalFit fit;
  try {
    fit = fit_signals(context, reviewed, request.config.signals);
    write_signal_fit(run, fit);
  } catch (...) {
    opened.put_back();
    throw;
  }

  RunResult result;
  for (const std::size_t d : {kTarget, kSource}) {
    const Domain& domain = d == kTarget ? dataset.target : dataset.source;
    const SignalModel model(context, reviewed, d, request.config.signals, fit.weights[d]);
    const auto scorer = model.scorer();
    const auto measure = [&](Split split) {
      return evaluate(context, *scorer, make_held_out(domain, split, request.config.eval.mask),
                      request.config.eval.options());
    };
    if (d == kTarget) {
      const MetricValues valid = metric_values(measure(Split::valid).all.metrics);
      const auto found = valid.find(request.config.train.metric);
      result.metric = request.config.train.metric;
      if (found != valid.end()) result.valid = found->second;
    }
    const Evaluation test = measure(Split::test);
    result.domains[domain.name] = domain_result(test.all);
    write_user_metrics(run.user_metrics(domain.name).string(), test.per_user, domain.users);
  }
  write_result(run, result);
  opened.finish();
  return {false, 0, result};
}

}  // namespace cfaa
