// A step as those who watch it see it.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>

#include "host/device/make_context.h"
#include "host/train/step_runner.h"
#include "tests/compare.h"
#include "tests/small_world.h"

namespace cfaa::test {
namespace {

class Watched : public StepObserver<float> {
 public:
  void part_done(std::string_view part, const StepArrays<float>& arrays) override {
    parts.emplace_back(part);
    EXPECT_EQ(arrays.score.size(), part == "towers" ? 0 : arrays.z.rows());
    EXPECT_EQ(arrays.tables.size(), part == "backward" || part == "update" ? 8u : 0u);
  }
  std::vector<std::string> parts;
};

// A model of its own for each test.
class Step : public OnDevice {
 protected:
  void make(const ModelOptions& options, const TrainOptions& train = small_training()) {
    runner_.reset();
    model_.reset();
    options_ = options;
    train_ = train;
    context_ = make_context(GetParam(), {.threads = 2, .seed = 5});
    assembler_.emplace(world_.data(), options_, train_);
    model_.emplace(*context_, options_, AlignmentOptions{}, model_shape(world_.data()),
                   assembler_->shape());
    runner_.emplace(*context_, *model_, *assembler_, train_);
    runner_->load(0);
    model_->initialize(*context_, runner_->batch(), 3);
  }

  SmallWorld world_;
  ModelOptions options_;
  TrainOptions train_;
  std::unique_ptr<Context> context_;
  std::optional<BatchAssembler<float>> assembler_;
  std::optional<Cfaa<float>> model_;
  std::optional<StepRunner<float>> runner_;
};
CFAA_TEST_ON_DEVICES(Step);

TEST_P(Step, ShowsItsPartsInOrder) {
  make(small_model());
  Watched watched;

  runner_->run_observed(0, watched);

  EXPECT_EQ(watched.parts, (std::vector<std::string>{"towers", "scorer", "vertical", "horizontal",
                                                     "backward", "update"}));
}

TEST_P(Step, ComputesNoLossThatIsLeftOut) {
  ModelOptions options = small_model();
  options.losses.term("vertical").weight = 0;
  make(options);
  Watched watched;

  runner_->run_observed(0, watched);

  EXPECT_EQ(watched.parts,
            (std::vector<std::string>{"towers", "scorer", "horizontal", "backward", "update"}));
  EXPECT_EQ(runner_->measures().losses.size(), 1u);
}

TEST_P(Step, IsTheSameWatchedOrNot) {
  make(small_model());
  Watched watched;
  runner_->run_observed(0, watched);
  const std::vector<float> expected = to_host(*context_, model_->parameters().dense());
  make(small_model());

  runner_->run(0);

  runner_->pause();
  EXPECT_EQ(to_host(*context_, model_->parameters().dense()), expected);
}

TEST_P(Step, MeasuresEveryLossByName) {
  ModelOptions options = small_model();
  options.losses.term("vertical").schedule = LossSchedule::warmup;
  options.losses.term("vertical").warmup_epochs = 4;
  make(options);
  std::map<std::string, std::vector<float>> arrays;
  NamedArrays<float> named(
      model_->parameters(),
      [&](const std::string& name, MatrixView<const float> array, VectorView<const int32_t>) {
        if (name.starts_with("loss.") || name.starts_with("gradient.z.")) {
          arrays[name] = to_host(*context_, array);
        }
      });

  runner_->run_observed(0, named);

  const StepMeasures found = runner_->measures();
  double total = found.score[kSource] + found.score[kTarget];
  for (const StepMeasures::Loss& loss : found.losses) {
    double squares = 0;
    for (const float g : arrays.at("gradient.z." + loss.name)) squares += double(g) * g;
    EXPECT_EQ(loss.value, arrays.at("loss." + loss.name)[0]);
    EXPECT_TRUE(close(std::sqrt(squares), loss.norm, 1e-6)) << loss.name;
    total += loss.weight * loss.value;
  }
  EXPECT_EQ(found.score[kTarget], arrays.at("loss.score")[1]);
  EXPECT_EQ(found.total(), total);
  EXPECT_EQ(found.loss("horizontal").weight, 0.001);
  EXPECT_EQ(found.loss("vertical").weight,
            options.losses.term("vertical").weight_at(0, assembler_->steps_per_epoch()));
  EXPECT_LT(found.loss("vertical").weight, 0.5);
}

TEST_P(Step, StartsWithTheAskedSpreadAndTiedTowers) {
  ModelOptions options = small_model();
  make(options);
  std::vector<float> z;
  NamedArrays<float> named(
      model_->parameters(),
      [&](const std::string& name, MatrixView<const float> array, VectorView<const int32_t>) {
        if (name == "z") z = to_host(*context_, array);
      });
  runner_->run_observed(0, named);

  Parameters<float>& parameters = model_->parameters();
  std::map<std::string, std::vector<float>> weights;
  for (std::size_t l = 0; l < parameters.layers().size(); ++l) {
    weights[parameters.layers()[l].name] =
        to_host(*context_, parameters.weight(static_cast<int>(l)));
  }

  double squares = 0;
  for (const float x : z) squares += double(x) * x;
  EXPECT_GT(std::sqrt(squares / double(z.size())), 0.5 * options.output_scale);
  EXPECT_LT(std::sqrt(squares / double(z.size())), 3 * options.output_scale);
  EXPECT_TRUE(
      close(weights.at("source.user.layer0.weight"), weights.at("target.user.layer0.weight"), 0.1));
}

}  // namespace
}  // namespace cfaa::test
