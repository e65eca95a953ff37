#include "host/signals/signals_options.h"

namespace cfaa {
namespace {

std::vector<std::string> every_name() {
  std::vector<std::string> names;
  for (int s = 0; s < kSignalNames; ++s) names.emplace_back(name_of(static_cast<SignalName>(s)));
  return names;
}

}  // namespace

std::vector<SignalName> SignalsOptions::names() const {
  std::vector<SignalName> names;
  for (const std::string& name : use) names.push_back(signal_by_name(name));
  return names;
}

SignalOptions SignalsOptions::signal() const {
  SignalOptions options;
  options.neighbours = neighbours;
  options.seed = static_cast<uint64_t>(seed);
  return options;
}

FoldOptions SignalsOptions::fold() const {
  FoldOptions options;
  options.folds = folds;
  options.seed = static_cast<uint64_t>(seed);
  return options;
}

SignalsOptions default_signals() {
  SignalsOptions options;
  options.use = every_name();
  return options;
}

OptionSet signals_option_set(SignalsOptions& options) {
  OptionSet set("signals");
  set.add("residual", options.residual,
          "what is added to the signals' sum: nothing, or the score of the section model, trained "
          "on what the signals leave over",
          {{"none", SignalResidual::none}, {"model", SignalResidual::model}});
  set.when_assigned([&options] {
    if (options.residual == SignalResidual::model && options.use.empty()) {
      options.use = every_name();
    }
  });
  set.add("use", options.use,
          "signals that the scorer weighs; none: a model alone; all where residual is model",
          every_name());
  set.add("folds", options.folds, "folds of the training split that weights are fitted on",
          between(2, 100));
  set.add("neighbours", options.neighbours, "votes kept for an item, of each item-item signal",
          at_least(1));
  set.add("prior", options.prior, "edges that the source's fit counts as; auto: by validation",
          {{"auto", SignalPrior::automatic},
           {"none", SignalPrior::none},
           {"30", SignalPrior::edges_30},
           {"100", SignalPrior::edges_100},
           {"300", SignalPrior::edges_300},
           {"only", SignalPrior::only}});
  set.add("seed", options.seed, "random seed of folds and drawn items", at_least(0));
  return set;
}

}  // namespace cfaa
