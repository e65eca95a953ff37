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
enum class LossSchedule { constant, warmup, ramp };

struct LossTerm {
  std::string name;
  double weight = 0;  // its lambda
  LossSchedule schedule = LossSchedule::constant;
  int64_t warmup_epochs = 5;
  int64_t phase = 0;      // the first of training in which it counts
  bool left_out = false;  // by model.variant

  bool used() const { return weight > 0 && !left_out; }
  // Whether it has a group of parameters of its own.
  bool owns_layers() const { return name == "adversary"; }
  // Whether it is one of the paper's alignment losses.
  bool aligns() const { return name == "vertical" || name == "horizontal"; }
  // The weight at a step, counted from 0.
  double weight_at(int64_t step, int64_t steps_per_epoch) const;
};

// What a discriminator is shown, whose embeddings work against it, and how.
enum class AdversaryInput { sides, pair };
enum class AdversarySide { both, target };
enum class AdversaryGoal { reverse, confuse };

struct AdversaryOptions {
  std::vector<int64_t> layers = {16, 8};
  double learning_rate = 1e-3;
  AdversaryInput input = AdversaryInput::sides;
  AdversarySide against = AdversarySide::both;
  AdversaryGoal goal = AdversaryGoal::reverse;
};

// Squared distances of unit vectors.
struct CenterOptions {
  double inner = 0.2, outer = 0.9;
};

// Probabilities that self-training takes for sure.
struct SelfTrainingOptions {
  double low = 0.2, high = 0.8;
};

struct LossOptions {
  // In the order in which a step computes them: L_O and L_A of the paper, then those of the
  // baselines.
  std::vector<LossTerm> terms = {{"vertical", 0.5}, {"horizontal", 0.001}, {"coral"},
                                 {"center"},        {"self_training"},     {"adversary"}};
  CenterOptions center;
  SelfTrainingOptions self_training;
  AdversaryOptions adversary;

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
