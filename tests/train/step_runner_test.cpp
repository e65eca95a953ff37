// Whole steps on every device: what the CPU computes, the CUDA code computes too, replayed from
// graphs; and a run does not depend on the number of threads.

#include "host/train/step_runner.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <numeric>

#include "host/core/error.h"
#include "host/device/make_context.h"
#include "host/train/trained_model.h"
#include "tests/compare.h"
#include "tests/small_world.h"
#if CFAA_EMULATED
#include "emulator/control.h"
#endif

namespace cfaa::test {
namespace {

struct Trained {
  std::vector<float> parameters;
  StepMeasures measures;
  DomainEmbeddings target;
  std::size_t segments = 0, between = 0;
};

// Emulated, most of a step is waiting at barriers, one or more for each iteration of a coupling.
AlignmentOptions short_couplings() {
  AlignmentOptions options;
  options.typical.iterations = 4;
  options.coupling.iterations = 10;
  return options;
}

Trained train_steps(Context& context, int64_t steps, const ModelOptions& options,
                    const TrainOptions& train = small_training(),
                    const SmallWorld& world = SmallWorld(),
                    const AlignmentOptions& alignment = short_couplings()) {
  BatchAssembler<float> assembler(world.data(), options, train);
  Cfaa<float> model(context, options, alignment, model_shape(world.data()), assembler.shape());
  StepRunner<float> runner(context, model, assembler, train);
  runner.load(0);
  model.initialize(context, runner.batch(), 3);
  for (int64_t step = 0; step < steps; ++step) runner.run(step);
  Trained result;
  result.measures = runner.measures();
  result.segments = runner.replay().captured_segments();
  result.between = runner.replay().calls_between_segments();
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
  EXPECT_TRUE(close(expected.measures.score[kTarget], found.measures.score[kTarget], 2e-3));
  EXPECT_EQ(found.segments > 0, GetParam() == "cuda");
}

TEST_P(Steps, HaveTheSameBitsWhereverReviewsLie) {
  const SmallWorld world;
  const ModelOptions options = small_model();
  const TrainOptions train = small_training();
  std::vector<float> parameters[2];
  for (const Placement placement : {Placement::device, Placement::host}) {
    const auto context = make_context(GetParam(), {.threads = 2, .seed = 5});
    BatchAssembler<float> assembler(world.data(), options, train);
    ModelShape shape = model_shape(world.data());
    shape.review_placement = placement;
    Cfaa<float> model(*context, options, short_couplings(), shape, assembler.shape());
    StepRunner<float> runner(*context, model, assembler, train);
    runner.load(0);
    model.initialize(*context, runner.batch(), 3);
    for (int64_t step = 0; step < 3; ++step) runner.run(step);
    runner.settle();
    runner.pause();
    const bool copied = GetParam() == "cuda";
    EXPECT_EQ(model.encoder().review_sizes().device > 0, copied && placement == Placement::device);
    EXPECT_EQ(model.encoder().review_sizes().host > 0, copied && placement == Placement::host);
    parameters[placement == Placement::host] = to_host(*context, model.parameters().dense());
  }

  EXPECT_EQ(parameters[0], parameters[1]);
}

// Users' histories are short beside those of items, and leave most of their lists' room unused.
TEST_P(Steps, AgreeWithTheCpuWhereTheBatchHasGaps) {
  const SmallWorld world(60, 12);
  ModelOptions options = small_model();
  options.losses.choose(Variant::base);
  TrainOptions train = small_training();
  train.batch_size = 256;
  const auto cpu = make_context("cpu", {.threads = 2, .seed = 5});
  const auto device = make_context(GetParam(), {.threads = 2, .seed = 5});
  const Trained expected = train_steps(*cpu, 2, options, train, world);

  const Trained found = train_steps(*device, 2, options, train, world);

  EXPECT_TRUE(close(expected.parameters, found.parameters, 2e-3));
}

// N 32, D 24, K 16, all of CFAA; the whole length for tools/test --full.
Trained train_long(const std::string& device) {
  const int64_t steps = std::getenv("CFAA_LONG_TESTS") == nullptr ? 4 : 300;
  const SmallWorld world(40, 30, 12);
  ModelOptions options;
  options.dim = 24;
  options.layers = {24};
  options.scorer_layers = {16};
  TrainOptions train;
  train.batch_size = 32;
  AlignmentOptions alignment = short_couplings();
  alignment.typical.k = 16;
  const auto context = make_context(device, {.threads = 2, .seed = 5});
  return train_steps(*context, steps, options, train, world, alignment);
}

// Rounding differs and Adam divides it by itself where a gradient is next to nothing, so the
// parameters part slowly; what the model says of the users does not.
TEST_P(Steps, AgreeWithTheCpuOverALongRun) {
  const Trained expected = train_long("cpu");

  const Trained found = train_long(GetParam());

  EXPECT_TRUE(close(expected.target.z[kUser], found.target.z[kUser], 1e-2));
  EXPECT_TRUE(close(expected.target.z[kItem], found.target.z[kItem], 1e-2));
  EXPECT_TRUE(close(expected.parameters, found.parameters, 1e-2));
  EXPECT_TRUE(close(expected.measures.score[kSource], found.measures.score[kSource], 1e-2));
  EXPECT_TRUE(close(expected.measures.score[kTarget], found.measures.score[kTarget], 1e-2));
  for (const StepMeasures::Loss& loss : expected.measures.losses) {
    EXPECT_TRUE(close(loss.value, found.measures.loss(loss.name).value, 1e-2)) << loss.name;
  }
  EXPECT_EQ(found.segments > 0, GetParam() == "cuda");
}

#if CFAA_EMULATED
AlignmentOptions by_cusolver() {
  AlignmentOptions options = short_couplings();
  options.slim.solver = Solver::cusolver;
  return options;
}

TEST(EmulatedSteps, AreOneGraphUnlessCusolverSolves) {
  const auto products = make_context("cuda", {.threads = 2, .seed = 5}),
             cusolver = make_context("cuda", {.threads = 2, .seed = 5});

  const Trained whole = train_steps(*products, 4, small_model());
  const Trained parted =
      train_steps(*cusolver, 4, small_model(), small_training(), SmallWorld(), by_cusolver());

  EXPECT_EQ(whole.segments, 1u);
  EXPECT_EQ(whole.between, 0u);
  EXPECT_GT(parted.between, 0u) << "cuSOLVER is never captured";
  EXPECT_TRUE(close(whole.parameters, parted.parameters, 1e-4));
}

// From the third step on attribute 2 of the target's items is zero but for what it learns, and
// delta next to nothing: BB' + delta I is beyond what the products reach. `look_every` steps
// somebody waits for the device.
struct SolvedAgain {
  std::vector<float> parameters;
  int64_t steps = 0;
};

SolvedAgain with_a_lost_attribute(Solver solver, int64_t look_every, bool graphs = true) {
  const auto context = make_context("cuda", {.threads = 2, .seed = 5});
  const SmallWorld world;
  const ModelOptions options = small_model();
  const TrainOptions train = small_training();
  AlignmentOptions alignment = short_couplings();
  alignment.slim.delta = 1e-15;
  alignment.slim.solver = solver;
  BatchAssembler<float> assembler(world.data(), options, train);
  Cfaa<float> model(*context, options, alignment, model_shape(world.data()), assembler.shape());
  StepRunner<float> runner(*context, model, assembler, train, graphs);
  runner.load(0);
  model.initialize(*context, runner.batch(), 3);
  for (int64_t step = 0; step < 5; ++step) {
    if (step == 2) {
      runner.measures();
      Parameters<float>& parameters = model.parameters();
      for (std::size_t l = 0; l < parameters.layers().size(); ++l) {
        const int layer = static_cast<int>(l);
        if (parameters.layers()[l].name == "target.item.layer1.bias") {
          context->runtime().fill_zero(parameters.bias(layer).data + 2, sizeof(float));
        } else if (parameters.layers()[l].name == "target.item.layer1.weight") {
          const MatrixView<float> weight = parameters.weight(layer);
          context->runtime().fill_zero(weight.data + 2 * weight.stride[0],
                                       static_cast<std::size_t>(weight.cols()) * sizeof(float));
        }
      }
    }
    runner.run(step);
    if ((step + 1) % look_every == 0) runner.measures();
  }
  runner.measures();
  return {to_host(*context, model.parameters().dense()), runner.solved_again()};
}

TEST(EmulatedSteps, ThatProductsCannotSolveAreSolvedByCusolverWheneverSomebodyLooks) {
  const SolvedAgain late = with_a_lost_attribute(Solver::gemm, 5);

  const SolvedAgain soon = with_a_lost_attribute(Solver::gemm, 1),
                    sometimes = with_a_lost_attribute(Solver::gemm, 4),
                    plain = with_a_lost_attribute(Solver::gemm, 2, false),
                    cusolver = with_a_lost_attribute(Solver::cusolver, 5);

  EXPECT_GT(late.steps, 0);
  EXPECT_LE(late.steps, 3);
  EXPECT_EQ(soon.steps, late.steps);
  EXPECT_EQ(soon.parameters, late.parameters);
  EXPECT_EQ(sometimes.parameters, late.parameters);
  EXPECT_EQ(plain.parameters, late.parameters);
  EXPECT_EQ(cusolver.steps, 0);
  EXPECT_TRUE(close(late.parameters, cusolver.parameters, 1e-3));
}

TEST(EmulatedSteps, AreReplayedWhereTheDriverRefusesToCaptureLibraries) {
  const auto captured = make_context("cuda", {.threads = 2, .seed = 5}),
             refused = make_context("cuda", {.threads = 2, .seed = 5});
  const Trained expected = train_steps(*captured, 5, small_model());
  emulator::set_library_capture_refused(true);

  const Trained found = train_steps(*refused, 5, small_model());

  emulator::set_library_capture_refused(false);
  EXPECT_EQ(expected.between, 0u);
  EXPECT_GT(found.between, expected.between);
  EXPECT_EQ(expected.parameters, found.parameters);
}

// Two epochs with the arena of a GPU, which merges its blocks and frees the old ones. Ranking wants
// more of it than a step does.
struct TwoEpochs {
  std::vector<float> parameters;
  std::int64_t captures = 0;
};

TwoEpochs two_epochs(bool evaluate, bool graphs = true) {
  const auto context = make_context("cuda", {.threads = 2, .seed = 5});
  const SmallWorld world(260, 1020);
  const ModelOptions options = small_model();
  const TrainOptions train = small_training();
  BatchAssembler<float> assembler(world.data(), options, train);
  Cfaa<float> model(*context, options, short_couplings(), model_shape(world.data()),
                    assembler.shape());
  StepRunner<float> runner(*context, model, assembler, train, graphs);
  runner.load(0);
  model.initialize(*context, runner.batch(), 3);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t step = 0; step < 3; ++step) runner.run(3 * epoch + step);
    runner.measures();
    if (!evaluate) continue;
    runner.pause();
    const DomainEmbeddings embeddings = embed_domain<float>(*context, model, assembler, kTarget);
    const auto scorer = make_scorer(*context, embeddings, scorer_arrays<float>(*context, model));
    std::vector<int32_t> users(static_cast<std::size_t>(embeddings.count[kUser]));
    std::iota(users.begin(), users.end(), 0);
    scorer->rank(*context, users, make_user_items(embeddings.count[kUser], {}), {.k = 5});
  }
  return {to_host(*context, model.parameters().dense()), runner.replay().captures()};
}

TEST(EmulatedSteps, AreCapturedAgainWhereAnEvaluationMovedTheArena) {
  emulator::set_merged_arena(true);
  const TwoEpochs plain = two_epochs(false, false), trained = two_epochs(false);

  const TwoEpochs evaluated = two_epochs(true);

  emulator::set_merged_arena(false);
  EXPECT_EQ(plain.captures, 0);
  EXPECT_EQ(trained.captures, 1);
  EXPECT_EQ(evaluated.captures, 2);
  EXPECT_EQ(evaluated.parameters, trained.parameters);
  EXPECT_EQ(evaluated.parameters, plain.parameters);
}

TEST(EmulatedSteps, ARankingDoesNotWaitForEveryBlockOfItems) {
  const auto context = make_context("cuda", {.threads = 2, .seed = 5});
  const SmallWorld world(40, 200);
  const ModelOptions options = small_model();
  const TrainOptions train = small_training();
  BatchAssembler<float> assembler(world.data(), options, train);
  Cfaa<float> model(*context, options, {}, model_shape(world.data()), assembler.shape());
  StepRunner<float> runner(*context, model, assembler, train);
  runner.load(0);
  model.initialize(*context, runner.batch(), 3);
  const DomainEmbeddings embeddings = embed_domain<float>(*context, model, assembler, kTarget);
  const auto scorer = make_scorer(*context, embeddings, scorer_arrays<float>(*context, model));
  const std::vector<int32_t> users = {0, 1, 2, 3};
  const auto waits = [&](int64_t item_block) {
    const uint64_t before = emulator::counters().synchronisations;
    scorer->rank(*context, users, make_user_items(embeddings.count[kUser], {}),
                 {.k = 5, .item_block = item_block});
    return emulator::counters().synchronisations - before;
  };
  waits(200);  // the users' rows are there, and the arena has what it needs

  EXPECT_EQ(waits(10), waits(200));
}
#endif

// An infinite bias from the sixth step on, which nobody looks at until the ninth is queued.
TEST_P(Steps, NameTheFirstBadStepAndChangeNothingAfterIt) {
  const auto context = make_context(GetParam(), {.threads = 2, .seed = 5});
  const SmallWorld world;
  const ModelOptions options = small_model();
  const TrainOptions train = small_training();
  BatchAssembler<float> assembler(world.data(), options, train);
  Cfaa<float> model(*context, options, short_couplings(), model_shape(world.data()),
                    assembler.shape());
  StepRunner<float> runner(*context, model, assembler, train);
  runner.load(0);
  model.initialize(*context, runner.batch(), 3);
  for (int64_t step = 0; step < 5; ++step) runner.run(step);
  runner.measures();
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t l = 0; l < model.parameters().layers().size(); ++l) {
    if (model.parameters().layers()[l].name != "target.item.layer1.bias") continue;
    context->runtime().copy_from_host(model.parameters().bias(static_cast<int>(l)).data + 2,
                                      &infinity, sizeof(infinity));
  }
  context->runtime().synchronize();
  const std::vector<float> before = to_host(*context, model.parameters().dense());

  for (int64_t step = 5; step < 9; ++step) runner.run(step);

  try {
    runner.measures();
    FAIL() << "no fault was latched";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find("step 6: "), 0u) << message;
    EXPECT_TRUE(message.find("L_C") != std::string::npos ||
                message.find("attribute 2") != std::string::npos)
        << message;
  }
  EXPECT_EQ(to_host(*context, model.parameters().dense()), before);
}

TEST(StepsOnTheCpu, LowerTheLoss) {
  const auto context = make_context("cpu", {.threads = 2, .seed = 5});

  const Trained early = train_steps(*context, 1, small_model());
  const Trained late = train_steps(*context, 60, small_model());

  EXPECT_LT(late.measures.score[kSource] + late.measures.score[kTarget],
            0.9 * (early.measures.score[kSource] + early.measures.score[kTarget]));
}

TEST(StepsOnTheCpu, HaveTheSameBitsForEveryNumberOfThreads) {
  const auto one = make_context("cpu", {.threads = 1}), three = make_context("cpu", {.threads = 3});

  EXPECT_EQ(train_steps(*one, 10, small_model()).parameters,
            train_steps(*three, 10, small_model()).parameters);
}

}  // namespace
}  // namespace cfaa::test
