#pragma once

// The section `signals` of a configuration: which signals a run's scorer weighs, and how.

#include <cstdint>
#include <string>
#include <vector>

#include "host/core/options.h"
#include "host/signals/out_of_fold.h"

namespace cfaa {

// How much the source's fit counts in the target's, in edges of the target.
enum class SignalPrior { automatic, none, edges_30, edges_100, edges_300, only };

// What is added to the signals: nothing, or a model that is trained on what they leave over.
enum class SignalResidual { none, model };

struct SignalsOptions {
  std::vector<std::string> use;  // empty: the run has no signals, it trains CFAA
  SignalResidual residual = SignalResidual::none;
  int64_t folds = 5;
  int64_t neighbours = 200;
  SignalPrior prior = SignalPrior::automatic;
  int64_t seed = 0;  // of folds, drawn items and the factors that ials starts from

  // Whether signals score alone, or a model alone; a residual has both.
  bool alone() const { return !use.empty() && residual == SignalResidual::none; }
  bool with_model() const { return !use.empty() && residual == SignalResidual::model; }

  std::vector<SignalName> names() const;
  SignalOptions signal() const;
  FoldOptions fold() const;
};

// Every signal: what `train` uses where it is given no configuration.
SignalsOptions default_signals();

OptionSet signals_option_set(SignalsOptions& options);

}  // namespace cfaa
