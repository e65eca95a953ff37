#include "host/train/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/eval/metric_name.h"

namespace cfaa {
namespace {

using nlohmann::json;

// The path of the first value of `own` that is not that of `usual`, and the value; "" where all
// are the same.
std::string first_difference(const json& own, const json& usual, const std::string& path) {
  if (!own.is_object()) return own == usual ? "" : fmt::format("{} is {}", path, own.dump());
  for (const auto& [key, value] : own.items()) {
    const std::string found = first_difference(value, usual.at(key), path + "." + key);
    if (!found.empty()) return found;
  }
  return "";
}

// Where signals score alone nothing may be said of a model.
void check_no_model(RunConfig config) {
  RunConfig usual;
  config.model.scorer = usual.model.scorer;  // none says the same
  const json set = config.to_json(), defaults = usual.to_json();
  for (const char* section : {"model", "losses", "alignment", "train"}) {
    const std::string found = first_difference(set.at(section), defaults.at(section), section);
    if (found.empty()) continue;
    throw Error(fmt::format(
        "{}, and signals.use is given with signals.residual none: signals would score alone and no "
        "model be trained; set signals.residual to model, or leave one of them out",
        found));
  }
}

}  // namespace

std::vector<OptionSet> RunConfig::sections() {
  const OptionSet losses = loss_option_set(model.losses);
  OptionSet training = train_option_set(train);
  training.add_renamed("lambda.vertical", losses, {"vertical.weight"});
  training.add_renamed("lambda.horizontal", losses, {"horizontal.weight"});
  training.add_renamed("lambda.schedule", losses, {"vertical.schedule", "horizontal.schedule"});
  training.add_renamed("lambda.warmup_epochs", losses,
                       {"vertical.warmup_epochs", "horizontal.warmup_epochs"});
  return {model_option_set(model),     losses,   alignment_option_set(alignment),
          signals_option_set(signals), training, evaluation_option_set(eval)};
}

void RunConfig::read(const nlohmann::json& config, const std::string& origin) {
  std::vector<OptionSet> ordered = sections();
  // A weight brings its loss back; model.variant leaves losses out and so comes last.
  std::rotate(ordered.begin(), ordered.begin() + 1, ordered.end());
  for (OptionSet& section : ordered) {
    if (config.contains(section.section())) section.read(config[section.section()], origin);
  }
}

void RunConfig::set(const std::string& assignment) {
  const std::size_t equals = assignment.find('='), dot = assignment.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
    throw Error(
        fmt::format("--set {}: must be section.key=value, such as train.epochs=5", assignment));
  }
  const std::string name = assignment.substr(0, dot);
  std::vector<std::string> known;
  for (OptionSet& section : sections()) {
    known.push_back(section.section());
    if (section.section() != name) continue;
    section.set(assignment.substr(dot + 1, equals - dot - 1), assignment.substr(equals + 1),
                "--set " + assignment);
    return;
  }
  const std::string near = nearest_name(name, known);
  throw Error(fmt::format("--set {}: '{}' is not a section; {}", assignment, name,
                          near.empty()
                              ? "they are model, losses, alignment, signals, train and eval"
                              : fmt::format("did you mean '{}'?", near)));
}

void RunConfig::check_phases() const {
  const std::size_t count = train.phases.count();
  for (std::size_t p = 0; p < kPhases; ++p) {
    const Phase& phase = train.phases[p];
    const std::string key = "train.phases." + phase_names()[p];
    const bool said = !phase.freeze.empty() || phase.labels != PhaseLabels::both ||
                      phase.start != PhaseStart::go_on || phase.steps > 0;
    if (p >= count && said) {
      throw Error(fmt::format("{} never begins: train.phases.{}.steps is 0", key,
                              phase_names()[count - 1]));
    }
    if (p < count && phase.labels == PhaseLabels::source && !train.uses(kSource)) {
      throw Error(fmt::format("{}.labels is source, and train.domains is target", key));
    }
    if (p < count && phase.start == PhaseStart::copy_source &&
        (!train.uses(kSource) || model.towers == TowerSharing::shared)) {
      throw Error(
          fmt::format("{}.start is copy_source, and {}: there is nothing to copy", key,
                      train.uses(kSource) ? "model.towers is shared" : "train.domains is target"));
    }
  }
  for (const LossTerm& term : model.losses.used()) {
    if (term.phase < static_cast<int64_t>(count)) continue;
    throw Error(fmt::format(
        "losses.{0}.phase is {1}, and there is no such phase: set "
        "train.phases.{2}.steps",
        term.name, phase_names()[static_cast<std::size_t>(term.phase)], phase_names()[count - 1]));
  }
}

void RunConfig::check() const {
  parse_metric(train.metric, "train.metric");
  eval.options();
  if (train.loss == ScoreLoss::bpr && train.source_negatives == 0) {
    throw Error("train.loss is bpr, and train.negatives.source is 0: there would be no pairs");
  }
  if (train.loss == ScoreLoss::bpr && train.target_supervision == Supervision::positives) {
    throw Error(
        "train.loss is bpr, and train.target_supervision is positives: a pair needs a negative");
  }
  if (train.target_supervision == Supervision::negatives && train.target_negatives == 0) {
    throw Error(
        "train.negatives.target is 0; to train without the target's negatives set "
        "train.target_supervision to positives or none");
  }
  if (train.domains == TrainedDomains::target) {
    if (train.target_supervision == Supervision::none) {
      throw Error(
          "train.domains is target, and train.target_supervision is none: nothing would be learned "
          "from");
    }
    if (train.epoch == EpochLength::source) {
      throw Error("train.domains is target, and train.epoch is source; set train.epoch to target");
    }
    if (const auto used = model.losses.used(); !used.empty()) {
      throw Error(fmt::format(
          "train.domains is target, and losses.{0}.weight is {1}: this loss compares two domains; "
          "set losses.{0}.weight to 0",
          used[0].name, used[0].weight));
    }
  }
  if (signals.alone()) check_no_model(*this);
  check_phases();
  model.check();
  if (model.scorer == ScorerKind::none && signals.use.empty()) {
    throw Error("model.scorer is none, and signals.use is []: nothing would score a pair");
  }
  if (signals.residual == SignalResidual::model) {
    if (signals.use.empty()) {
      throw Error(
          "signals.residual is model, and signals.use is []: there are no signals to be the "
          "residual of; leave signals.use out to have all");
    }
    if (model.scorer == ScorerKind::none) {
      throw Error(
          "signals.residual is model, and model.scorer is none: the model would score nothing");
    }
  }
  if (model.losses.term("horizontal").used() && model.dim < 2) {
    throw Error("model.dim is 1; the horizontal loss compares graphs and needs at least 2");
  }
}

nlohmann::json RunConfig::to_json() {
  nlohmann::json config;
  for (const OptionSet& section : sections()) config[section.section()] = section.current();
  return config;
}

}  // namespace cfaa
