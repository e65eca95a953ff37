#pragma once

// The losses beside L_C, by name: the `losses` section of the configuration.
//
//   "losses": {"vertical": {"weight": 0.5}, "horizontal": {"weight": 0.001, "schedule": "warmup"}}

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/options.h"

namespace cfaa {

// The paper's names for what is left of L = L_C + lambda_O L_O + lambda_A L_A.
enum class Variant { base, v, h, full };
enum class LossSchedule { constant, warmup };

struct LossTerm {
  std::string name;
  double weight = 0;  // its lambda
  LossSchedule schedule = LossSchedule::constant;
  int64_t warmup_epochs = 5;
  bool left_out = false;  // by model.variant

  bool used() const { return weight > 0 && !left_out; }
  // The weight at a step, counted from 0.
  double weight_at(int64_t step, int64_t steps_per_epoch) const;
};

struct LossOptions {
  // In the order in which a step computes them: L_O and L_A of the paper.
  std::vector<LossTerm> terms = {{"vertical", 0.5}, {"horizontal", 0.001}};

  LossTerm& term(std::string_view name);
  const LossTerm& term(std::string_view name) const;
  // Those that a step computes, in that order.
  std::vector<LossTerm> used() const;

  // Leaves out what the variant lacks. A weight that is set later brings its loss back.
  void choose(Variant variant);
  // What is used of the paper's two.
  Variant variant() const;
};

OptionSet loss_option_set(LossOptions& options);

}  // namespace cfaa
