// Training in phases: what a phase freezes keeps its bits, and the others learn.

#include "host/model/phase.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "host/device/make_context.h"
#include "host/train/step_runner.h"
#include "tests/compare.h"
#include "tests/small_world.h"

namespace cfaa::test {
namespace {

using Arrays = std::map<std::string, std::vector<float>>;

// Rec-DAN: the source and the scorer for three steps, then the target against a discriminator.
ModelOptions two_phase_model() {
  ModelOptions options = small_model();
  options.inputs = {"review"};
  options.towers = TowerSharing::separate;
  options.scorer = ScorerKind::mlp;
  options.losses.choose(Variant::base);
  LossTerm& adversary = options.losses.term("adversary");
  adversary.weight = 1;
  adversary.phase = 1;
  options.losses.adversary = {
      {4}, 1e-2, AdversaryInput::pair, AdversarySide::target, AdversaryGoal::confuse};
  return options;
}

TrainOptions two_phases() {
  TrainOptions train = small_training();
  train.target_supervision = Supervision::none;
  train.learning_rate = 1e-2;
  train.phases.phases[0] = {3, {"target"}, PhaseLabels::source, PhaseStart::go_on};
  train.phases.phases[1] = {0, {"source", "scorer"}, PhaseLabels::both, PhaseStart::copy_source};
  return train;
}

class Phases : public OnDevice {
 protected:
  Phases() : context_(make_context(GetParam(), {.threads = 2, .seed = 5})) { start(); }

  void start() {
    runner_.reset();
    assembler_.emplace(world_.data(), options_, train_);
    model_.emplace(*context_, options_, AlignmentOptions{}, model_shape(world_.data()),
                   assembler_->shape());
    runner_.emplace(*context_, *model_, *assembler_, train_);
    runner_->load(0);
    model_->initialize(*context_, runner_->batch(), 3);
  }

  Arrays arrays() {
    runner_->pause();
    Arrays copies;
    model_->parameters().for_each([&](const std::string& name, MatrixView<float> array) {
      copies[name] = to_host(*context_, array);
    });
    return copies;
  }

  SmallWorld world_;
  ModelOptions options_ = two_phase_model();
  TrainOptions train_ = two_phases();
  std::unique_ptr<Context> context_;
  std::optional<BatchAssembler<float>> assembler_;
  std::optional<Cfaa<float>> model_;
  std::optional<StepRunner<float>> runner_;
};
CFAA_TEST_ON_DEVICES(Phases);

TEST_P(Phases, FreezeWhatTheyNameMomentsIncluded) {
  const Arrays start = arrays();
  for (int64_t step = 0; step < 3; ++step) runner_->run(step);
  const Arrays middle = arrays();
  for (int64_t step = 3; step < 7; ++step) runner_->run(step);
  const Arrays end = arrays();

  for (const auto& [name, array] : start) {
    const std::string owner =
        name.starts_with("adam.") ? name.substr(std::string("adam.m.").size()) : name;
    const bool first = owner.starts_with("source.") || owner.starts_with("scorer.");
    EXPECT_EQ(middle.at(name) != array, first) << name;
    EXPECT_EQ(end.at(name) != middle.at(name), !first) << name;
  }
}

TEST_P(Phases, StartTheTargetAsACopyOfTheSource) {
  train_.phases.phases[1].freeze = {"source", "target", "scorer"};
  start();
  for (int64_t step = 0; step < 4; ++step) runner_->run(step);
  const Arrays end = arrays();

  for (const char* name : {"user.layer0.weight", "user.layer0.bias", "item.layer1.weight"}) {
    EXPECT_EQ(end.at(std::string("target.") + name), end.at(std::string("source.") + name)) << name;
  }
}

TEST_P(Phases, ComputeALossFromItsPhaseOn) {
  for (int64_t step = 0; step < 3; ++step) runner_->run(step);
  const StepMeasures::Loss before = runner_->measures().loss("adversary");
  runner_->run(3);
  const StepMeasures::Loss after = runner_->measures().loss("adversary");

  EXPECT_EQ(before.weight, 0);
  EXPECT_EQ(before.value, 0);
  EXPECT_EQ(after.weight, 1);
  EXPECT_GT(after.value, 0);
  EXPECT_GT(after.norm, 0);
}

TEST(PhaseOptions, CountStepsFromTheFirstPhaseOn) {
  PhaseOptions phases;
  EXPECT_EQ(phases.count(), 1u);
  phases.phases[0].steps = 10;
  phases.phases[1].steps = 5;

  EXPECT_EQ(phases.count(), 3u);
  EXPECT_EQ(phases.at(0), 0u);
  EXPECT_EQ(phases.at(9), 0u);
  EXPECT_EQ(phases.at(10), 1u);
  EXPECT_EQ(phases.at(15), 2u);
  EXPECT_EQ(phases.at(1000), 2u);
  EXPECT_EQ(phases.first_step(2), 15);
}

}  // namespace
}  // namespace cfaa::test
