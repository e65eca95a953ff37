#pragma once

// The configuration of a run: the sections `model`, `losses`, `alignment`, `signals`, `train` and
// `eval` of a file that every command reads (`prepare` and `embed` have theirs).

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/eval/evaluation_config.h"
#include "host/model/model_options.h"
#include "host/ops/alignment_config.h"
#include "host/signals/signals_options.h"
#include "host/train/train_options.h"

namespace cfaa {

struct RunConfig {
  ModelOptions model;
  AlignmentOptions alignment;
  SignalsOptions signals;
  TrainOptions train;
  EvaluationConfig eval;

  // One OptionSet per section, bound to this object.
  std::vector<OptionSet> sections();

  // Sections of other commands are passed over. Throws Error naming `origin` and the key.
  void read(const nlohmann::json& config, const std::string& origin);
  // "train.epochs=5", as --set gives it.
  void set(const std::string& assignment);
  // Throws Error where values do not go together.
  void check() const;

  nlohmann::json to_json();

 private:
  void check_phases() const;
};

}  // namespace cfaa
