// Whole steps on every device: what the CPU computes, the CUDA code computes too, replayed from
// graphs; and a run does not depend on the number of threads.

#include "host/train/step_runner.h"

#include <gtest/gtest.h>

#include "host/ops/device.h"
#include "host/train/trained_model.h"
#include "tests/compare.h"
#include "tests/train/small_world.h"

namespace cfaa::test {
namespace {

struct Trained {
  std::vector<float> parameters;
  StepReport report;
  DomainEmbeddings target;
  std::size_t segments = 0;
};

Trained train_steps(Context& context, int64_t steps, const ModelOptions& options) {
  const SmallWorld world;
  const TrainOptions train = small_training();
  BatchAssembler<float> assembler(world.data(), options, train);
  Cfaa<float> model(context, options, {}, model_shape(world.data()), assembler.shape());
  StepRunner<float> runner(context, model, assembler, train);
  runner.load(0);
  model.initialize(context, runner.batch(), 3);
  for (int64_t step = 0; step < steps; ++step) runner.run(step);
  Trained result;
  result.report = runner.report();
  result.segments = runner.replay().captured_segments();
  runner.pause();
  result.parameters = to_host(context, model.parameters().dense());
  result.target = embed_domain<float>(context, model, assembler, kTarget);
  return result;
}

class Steps : public OnDevice {};
CFAA_TEST_ON_DEVICES(Steps);

TEST_P(Steps, AgreeWithTheCpuAndAreReplayed) {
  // Dropout draws from the context's seed.
  const auto cpu = make_context("cpu", {.threads = 2, .seed = 5});
  const auto device = make_context(GetParam(), {.threads = 2, .seed = 5});
  const Trained expected = train_steps(*cpu, 12, small_model());

  const Trained found = train_steps(*device, 12, small_model());

  EXPECT_TRUE(close(expected.parameters, found.parameters, 2e-3));
  EXPECT_TRUE(close(expected.target.z[kUser], found.target.z[kUser], 2e-3));
  EXPECT_TRUE(close(expected.report.score_target, found.report.score_target, 2e-3));
  EXPECT_EQ(found.segments > 0, GetParam() == "cuda");
}

TEST(StepsOnTheCpu, LowerTheLoss) {
  const auto context = make_context("cpu", {.threads = 2, .seed = 5});

  const Trained early = train_steps(*context, 1, small_model());
  const Trained late = train_steps(*context, 60, small_model());

  EXPECT_LT(late.report.score_source + late.report.score_target,
            0.9 * (early.report.score_source + early.report.score_target));
}

TEST(StepsOnTheCpu, HaveTheSameBitsForEveryNumberOfThreads) {
  const auto one = make_context("cpu", {.threads = 1}), three = make_context("cpu", {.threads = 3});

  EXPECT_EQ(train_steps(*one, 10, small_model()).parameters,
            train_steps(*three, 10, small_model()).parameters);
}

}  // namespace
}  // namespace cfaa::test
