// Steps of several parts: the same bits on any number of ranks and threads, and the mathematics of
// one large batch.

#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <vector>

#include "host/core/error.h"
#include "host/device/make_context.h"
#include "host/train/step_runner.h"
#include "tests/compare.h"
#include "tests/refusal.h"
#include "tests/small_world.h"
#include "tests/thread_group.h"

namespace cfaa::test {
namespace {

template <class T>
struct Learned {
  std::vector<T> layers, tables;
  StepMeasures measures;
};

template <class T>
Learned<T> train_steps(Group& group, int threads, const ModelOptions& options,
                       const TrainOptions& train, const AlignmentOptions& alignment) {
  const SmallWorld world;
  const auto context = make_context("cpu", {.threads = threads, .seed = 5});
  BatchAssembler<T> assembler(world.data(), options, train);
  Cfaa<T> model(*context, options, alignment, model_shape(world.data()), assembler.shape());
  model.divide(*context, group, train.parts, train.alignment_batch == AlignmentBatch::global);
  StepRunner<T> runner(*context, model, assembler, train);
  runner.load(0);
  // Ranks have other batches: all start as the first does.
  if (group.is_first()) model.initialize(*context, runner.batch(), 3);
  model.parameters().for_each([&](const std::string&, MatrixView<T> array) {
    group.broadcast(*context, array.data, static_cast<std::size_t>(array.size()) * sizeof(T), 0);
  });
  for (int64_t step = 0; step < 4; ++step) runner.run(step);
  Learned<T> learned;
  learned.measures = runner.measures();
  runner.pause();
  for (int g = 0; g < model.parameters().groups(); ++g) {
    const std::vector<T> layers = to_host(*context, model.parameters().dense(g));
    learned.layers.insert(learned.layers.end(), layers.begin(), layers.end());
  }
  for (const auto& table : model.parameters().tables()) {
    for (const Tensor<T, 2>* array : {&table.w, &table.m, &table.v}) {
      const std::vector<T> values = array->to_host();
      learned.tables.insert(learned.tables.end(), values.begin(), values.end());
    }
  }
  return learned;
}

template <class T>
void expect_same(const Learned<T>& a, const Learned<T>& b) {
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.tables, b.tables);
  EXPECT_EQ(a.measures.score, b.measures.score);
  EXPECT_EQ(a.measures.score_norm, b.measures.score_norm);
  EXPECT_EQ(a.measures.gradient_norm, b.measures.gradient_norm);
  EXPECT_EQ(a.measures.target_probability, b.measures.target_probability);
  ASSERT_EQ(a.measures.losses.size(), b.measures.losses.size());
  for (std::size_t i = 0; i < a.measures.losses.size(); ++i) {
    EXPECT_EQ(a.measures.losses[i].value, b.measures.losses[i].value);
    EXPECT_EQ(a.measures.losses[i].norm, b.measures.losses[i].norm);
    EXPECT_EQ(a.measures.losses[i].weight, b.measures.losses[i].weight);
  }
}

// Trains on 1, 2, 4 ... ranks, and expects every rank to have learned what one by itself learns.
void expect_same_on_all_ranks(const ModelOptions& options, const TrainOptions& train) {
  AlignmentOptions alignment;
  alignment.coupling.iterations = 10;
  const auto alone = make_group_of_one();
  const Learned<float> expected = train_steps<float>(*alone, 1, options, train, alignment);
  for (int ranks = 1; ranks <= train.parts; ranks *= 2) {
    run_on_threads(ranks, [&](Group& group) {
      const Learned<float> found =
          train_steps<float>(group, 1 + group.rank() % 2, options, train, alignment);
      static std::mutex mutex;
      const std::lock_guard lock(mutex);
      SCOPED_TRACE("rank " + std::to_string(group.rank()) + " of " + std::to_string(ranks));
      expect_same(expected, found);
    });
  }
}

TrainOptions four_parts() {
  TrainOptions train = small_training();
  train.batch_size = 4;
  train.parts = 4;
  return train;
}

TEST(Ranks, LearnTheSameBitsWhateverTheirNumber) {
  expect_same_on_all_ranks(small_model(), four_parts());
}

TEST(Ranks, LearnTheSameBitsByLossesOfEachPart) {
  TrainOptions train = four_parts();
  train.alignment_batch = AlignmentBatch::local;
  train.max_norm = 0.01;

  expect_same_on_all_ranks(small_model(), train);
}

// Losses that own layers, read all rows, or scores.
TEST(Ranks, LearnTheSameBitsByTheLossesOfBaselines) {
  ModelOptions options = small_model();
  options.losses.choose(Variant::base);
  for (const char* name : {"coral", "center", "self_training", "adversary"}) {
    options.losses.term(name).weight = 0.5;
  }
  TrainOptions train = four_parts();
  train.parts = 2;

  expect_same_on_all_ranks(options, train);
}

TEST(Ranks, LearnTheSameBitsWithMorePartsThanColumns) {
  TrainOptions train = four_parts();
  train.batch_size = 2;
  train.parts = 8;

  expect_same_on_all_ranks(small_model(), train);
}

// Interactions follow each other from part to part as they do within one batch. Without negatives
// and dropout, V parts of N are one batch of V N.
TEST(Ranks, PartsComputeWhatOneLargeBatchDoes) {
  ModelOptions options = small_model();
  options.dropout = 0;
  options.output_scale = 1;
  TrainOptions parts = small_training(), whole = parts;
  for (TrainOptions* train : {&parts, &whole}) {
    train->target_supervision = Supervision::positives;
    train->source_negatives = train->target_negatives = 0;
  }
  parts.batch_size = 4;
  parts.parts = 2;
  whole.batch_size = 8;
  AlignmentOptions alignment;
  alignment.typical.k = 3;
  const auto alone = make_group_of_one();
  const SmallWorld world;

  // The start is scaled by the first batch, which differs: so the same start for both.
  const auto step_of = [&](const TrainOptions& train) {
    const auto context = make_context("cpu", {.threads = 1, .seed = 5});
    BatchAssembler<double> assembler(world.data(), options, train);
    Cfaa<double> model(*context, options, alignment, model_shape(world.data()), assembler.shape());
    const BatchLayout<double> layout(assembler.shape());
    std::vector<std::vector<char>> memory;
    std::vector<Batch<double>> batches;
    for (int64_t p = 0; p < train.parts; ++p) {
      memory.emplace_back(layout.bytes() + 256);
      const auto address = reinterpret_cast<std::uintptr_t>(memory.back().data());
      batches.push_back(layout.at(memory.back().data() + (256 - address % 256) % 256));
      assembler.assemble(p, batches.back());
    }
    model.initialize(*context, batches[0], 3);
    uint64_t seed = 1;
    for (std::size_t l = 0; l < model.parameters().layers().size(); ++l) {
      const MatrixView<double> weight = model.parameters().weight(static_cast<int>(l));
      const std::vector<double> values = normal<double>(weight.size(), seed++, 0.5);
      std::copy(values.begin(), values.end(), weight.data);
    }
    model.divide(*context, *alone, train.parts, true);
    model.step(*context, std::span<const Batch<double>>(batches), train.loss, MathMode::fp32);
    Learned<double> learned;
    learned.measures = model.measures(*context, batches);
    learned.layers = to_host(*context, model.parameters().dense_gradient());
    for (const auto& table : model.parameters().tables()) {
      const std::vector<double> m = table.m.to_host();
      learned.tables.insert(learned.tables.end(), m.begin(), m.end());
    }
    return learned;
  };
  const Learned<double> found = step_of(parts), expected = step_of(whole);

  EXPECT_TRUE(close(expected.layers, found.layers, 1e-9));
  EXPECT_TRUE(close(expected.tables, found.tables, 1e-9));
  EXPECT_TRUE(close(expected.measures.total(), found.measures.total(), 1e-12));
  EXPECT_TRUE(close(expected.measures.gradient_norm, found.measures.gradient_norm, 1e-9));
  for (const char* name : {"vertical", "horizontal"}) {
    EXPECT_GT(found.measures.loss(name).norm, 0);
    EXPECT_TRUE(close(expected.measures.loss(name).value, found.measures.loss(name).value, 1e-9));
    EXPECT_TRUE(close(expected.measures.loss(name).norm, found.measures.loss(name).norm, 1e-9));
  }
}

TEST(Ranks, DivideWhatCanBeDivided) {
  const auto context = make_context("cpu", {.threads = 1});
  const auto refused = [&](int ranks, int64_t parts) {
    std::string message;
    run_on_threads(ranks, [&](Group& group) {
      const std::string found = error_of([&] { PartSums<float>(*context, group, parts); });
      if (group.is_first()) message = found;
    });
    return message;
  };

  EXPECT_EQ(refused(1, 3), "train.parts is 3; it must be a power of two");
  EXPECT_EQ(refused(4, 2),
            "train.parts is 2, and there are 4 ranks: each computes as many parts, so start 1, 2, "
            "4 ... of at most 2 ranks, or set train.parts to 4 or a multiple");
  EXPECT_EQ(refused(3, 4),
            "train.parts is 4, and there are 3 ranks: each computes as many parts, so start 1, 2, "
            "4 ... of at most 4 ranks, or set train.parts to 4 or a multiple");
  EXPECT_EQ(refused(4, 4), "");
}

// A step that one rank cannot update is no rank's.
TEST(Ranks, ShareAFault) {
  run_on_threads(2, [](Group& group) {
    const auto context = make_context("cpu", {.threads = 1});
    const PartSums<float> sums(*context, group, 2);
    if (group.rank() == 1) {
      *context->fault_latch() = {static_cast<int32_t>(FaultCode::not_finite),
                                 static_cast<int32_t>(FaultSite::score), 0, 3, 0};
    }

    sums.share_fault(*context);

    EXPECT_THROW(context->check_faults(), Error);
  });
}

}  // namespace
}  // namespace cfaa::test
