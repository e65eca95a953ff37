// Batches: what they hold, and what they must not give away.

#include "host/train/batch_assembler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>
#include <string_view>

#include "host/train/permutation.h"
#include "tests/small_world.h"

namespace cfaa::test {
namespace {

// A batch in host memory. The assembler refers to its settings, so they are kept here.
class Assembled {
  const ModelOptions model_;
  const TrainOptions train_;

 public:
  Assembled(const SmallWorld& world, const ModelOptions& model, const TrainOptions& train)
      : model_(model),
        train_(train),
        assembler(world.data(), model_, train_),
        layout_(assembler.shape()),
        memory_(std::aligned_alloc(256, (layout_.bytes() + 255) / 256 * 256), std::free),
        batch(layout_.at(memory_.get())) {
    std::memset(memory_.get(), 0, layout_.bytes());
  }

  BatchAssembler<float> assembler;
  std::string_view bytes() const {
    return {static_cast<const char*>(memory_.get()), layout_.bytes()};
  }

 private:
  BatchLayout<float> layout_;
  std::unique_ptr<void, decltype(&std::free)> memory_;

 public:
  const Batch<float> batch;
};

// The rows of a table in bag `bag`.
std::vector<int32_t> bag_of(const EdgeLists<float>& lists, int64_t bag) {
  return {lists.index.data + lists.offset.data[bag], lists.index.data + lists.offset.data[bag + 1]};
}

ModelOptions with_liked_histories() {
  ModelOptions model = small_model();
  model.history_labels = HistoryLabels::ignore;
  return model;
}

TEST(BatchAssembler, LeavesThePredictedInteractionOutOfBothHistories) {
  const SmallWorld world;
  Assembled made(world, with_liked_histories(), small_training());

  for (int64_t step = 0; step < 6; ++step) {
    made.assembler.assemble(step, made.batch);
    for (std::size_t d = 0; d < 2; ++d) {
      const PerSide<SideBatch<float>>& side = made.batch.domain[d].side;
      for (int64_t r = 0; r < made.assembler.shape().n; ++r) {
        const int32_t user = bag_of(side[kUser].id, r)[0], item = bag_of(side[kItem].id, r)[0];
        const std::vector<int32_t> items = bag_of(side[kUser].history, r),
                                   users = bag_of(side[kItem].history, r);
        EXPECT_EQ(std::count(items.begin(), items.end(), item), 0);
        EXPECT_EQ(std::count(users.begin(), users.end(), user), 0);
        EXPECT_EQ(std::ssize(items), world.data().neighbours[d][kUser].degree(user) - 1);
      }
    }
  }
}

TEST(BatchAssembler, LeavesAsMuchOutForANegativeAsForAPositive) {
  const SmallWorld world;
  Assembled made(world, with_liked_histories(), small_training());
  made.assembler.assemble(0, made.batch);

  const PerSide<SideBatch<float>>& side = made.batch.domain[kTarget].side;
  for (int64_t r = made.assembler.shape().n; r < made.assembler.shape().rows(kTarget); ++r) {
    for (const std::size_t s : {kUser, kItem}) {
      const int64_t degree = world.data().neighbours[kTarget][s].degree(bag_of(side[s].id, r)[0]);
      EXPECT_EQ(std::ssize(bag_of(side[s].history, r)), std::max<int64_t>(degree - 1, 0));
    }
  }
}

TEST(BatchAssembler, DrawsNegativesThatTheUserHasNoInteractionWith) {
  const SmallWorld world;
  Assembled made(world, small_model(), small_training());
  made.assembler.assemble(2, made.batch);

  const DomainBatch<float>& target = made.batch.domain[kTarget];
  std::set<std::pair<int32_t, int32_t>> interactions;
  const SplitRows& rows = world.dataset().target.train;
  for (std::size_t i = 0; i < rows.user.size(); ++i) {
    interactions.emplace(rows.user[i], rows.item[i]);
  }
  for (int64_t r = made.assembler.shape().n; r < target.label.size(); ++r) {
    const auto pair =
        std::pair(bag_of(target.side[kUser].id, r)[0], bag_of(target.side[kItem].id, r)[0]);
    EXPECT_EQ(interactions.count(pair), 0u);
    EXPECT_EQ(target.label.data[r], 0);
  }
}

TEST(BatchAssembler, IsAFunctionOfTheSeedAndTheStep) {
  const SmallWorld world;
  Assembled one(world, small_model(), small_training()),
      other(world, small_model(), small_training());
  for (int64_t step = 0; step < 3; ++step) one.assembler.assemble(step, one.batch);
  const auto users = [](const Assembled& made) {
    const VectorView<int32_t> index = made.batch.domain[kSource].side[kUser].id.index;
    return std::vector(index.data, index.data + index.size());
  };
  const std::vector<int32_t> third = users(one);

  other.assembler.assemble(2, other.batch);
  EXPECT_EQ(users(other), third);
  other.assembler.assemble(3, other.batch);
  EXPECT_NE(users(other), third);
}

TEST(BatchAssembler, HasTheSameBytesForEveryNumberOfThreads) {
  TrainOptions train = small_training();
  train.batch_size = 70;
  const SmallWorld world;
  Assembled alone(world, small_model(), train), shared(world, small_model(), train);
  ThreadPool threads(3);
  for (int64_t step = 0; step < 3; ++step) {
    alone.assembler.assemble(step, alone.batch);
    shared.assembler.assemble(step, shared.batch, &threads);
    EXPECT_TRUE(alone.bytes() == shared.bytes()) << "step " << step;
  }
}

TEST(BatchAssembler, GoesThroughEveryInteractionOfTheTargetOnceAnEpoch) {
  const SmallWorld world;
  TrainOptions train = small_training();
  const int64_t rows = world.dataset().target.train.size();
  train.batch_size = rows / 3;
  Assembled made(world, small_model(), train);
  ASSERT_EQ(made.assembler.steps_per_epoch(), (rows + rows / 3 - 1) / (rows / 3));
  std::vector<std::pair<int32_t, int32_t>> seen;
  for (int64_t step = 0; step < 3; ++step) {
    made.assembler.assemble(step, made.batch);
    const PerSide<SideBatch<float>>& side = made.batch.domain[kTarget].side;
    for (int64_t r = 0; r < rows / 3; ++r) {
      seen.emplace_back(bag_of(side[kUser].id, r)[0], bag_of(side[kItem].id, r)[0]);
    }
  }

  const std::set<std::pair<int32_t, int32_t>> distinct(seen.begin(), seen.end());
  EXPECT_EQ(distinct.size(), seen.size());
}

TEST(BatchAssembler, WeighsRowsToAMeanAndLossesByTheirSchedule) {
  const SmallWorld world;
  ModelOptions model = small_model();
  model.losses.term("vertical").schedule = LossSchedule::warmup;
  Assembled made(world, model, small_training());
  made.assembler.assemble(0, made.batch);

  for (const DomainBatch<float>& domain : made.batch.domain) {
    EXPECT_NEAR(std::accumulate(domain.weight.data, domain.weight.data + domain.weight.size(), 0.0),
                1, 1e-6);
  }
  EXPECT_EQ(made.batch.loss_weight.data[0],
            model.losses.term("vertical").weight_at(0, made.assembler.steps_per_epoch()));
  EXPECT_EQ(made.batch.loss_weight.data[1], 0.001);
}

TEST(BatchAssembler, DescribesAnEntityByAllItHas) {
  const SmallWorld world;
  Assembled made(world, with_liked_histories(), small_training());
  const SideBatch<float>& side = made.batch.domain[kSource].side[kUser];
  const int64_t rows = side.id.offset.size() - 1;

  made.assembler.assemble_entities(kSource, kUser, 3, 2, rows, side);

  for (int64_t r = 0; r < rows; ++r) {
    const int64_t user = r == 0 ? 3 : 4;  // the last is repeated
    EXPECT_EQ(bag_of(side.id, r), std::vector{static_cast<int32_t>(user)});
    EXPECT_EQ(std::ssize(bag_of(side.history, r)),
              world.data().neighbours[kSource][kUser].degree(user));
  }
}

TEST(Neighbours, AreSortedAndKnowTheirInteraction) {
  const SmallWorld world;
  const SplitRows& rows = world.dataset().target.train;
  const Neighbours& items = world.data().neighbours[kTarget][kItem];

  ASSERT_EQ(items.count(), world.dataset().target.items.size());
  EXPECT_EQ(items.degree(items.count() - 1), 0);
  for (int64_t item = 0; item < items.count(); ++item) {
    const auto i = static_cast<std::size_t>(item);
    EXPECT_TRUE(std::is_sorted(items.other.begin() + items.offset[i],
                               items.other.begin() + items.offset[i + 1]));
    for (int64_t e = items.offset[i]; e < items.offset[i + 1]; ++e) {
      const auto row = static_cast<std::size_t>(items.row[static_cast<std::size_t>(e)]);
      EXPECT_EQ(rows.item[row], item);
      EXPECT_EQ(rows.user[row], items.other[static_cast<std::size_t>(e)]);
    }
  }
}

TEST(RowsWithoutALabel, AreInNoHistoryAndNoBatch) {
  Dataset dataset = SmallWorld().dataset();
  std::vector<float>& label = dataset.target.train.label;
  for (std::size_t r = 0; r < label.size(); r += 2) label[r] = kNoLabel;
  TrainingData data{dataset, {}, {}, {}};
  for (const std::size_t d : {kSource, kTarget})
    data.neighbours[d] = make_neighbours(data.domain(d));
  ModelOptions model = small_model();
  model.inputs = {"id", "history"};
  const TrainOptions train = small_training();
  BatchAssembler<float> assembler(data, model, train);
  const BatchLayout<float> layout(assembler.shape());
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(256, (layout.bytes() + 255) / 256 * 256), std::free);
  const Batch<float> batch = layout.at(memory.get());

  std::set<std::pair<int32_t, int32_t>> labelled;
  for (std::size_t r = 1; r < label.size(); r += 2) {
    labelled.emplace(dataset.target.train.user[r], dataset.target.train.item[r]);
  }
  EXPECT_EQ(data.neighbours[kTarget][kUser].row.size(), labelled.size());
  for (const int32_t row : data.neighbours[kTarget][kUser].row) EXPECT_EQ(row % 2, 1);
  for (int64_t step = 0; step < 4; ++step) {
    assembler.assemble(step, batch);
    const PerSide<SideBatch<float>>& side = batch.domain[kTarget].side;
    for (int64_t r = 0; r < assembler.shape().n; ++r) {
      EXPECT_TRUE(labelled.contains({bag_of(side[kUser].id, r)[0], bag_of(side[kItem].id, r)[0]}));
    }
  }
}

TEST(Permutation, HoldsEveryNumberOnceAndDiffersByStream) {
  for (const int64_t size : {1, 2, 5, 64, 1000}) {
    const Permutation order(size, 3, 1), other(size, 3, 2);
    std::vector<int64_t> values;
    bool differs = false;
    for (int64_t i = 0; i < size; ++i) {
      values.push_back(order(i));
      differs |= other(i) != order(i);
    }

    std::sort(values.begin(), values.end());
    std::vector<int64_t> expected(static_cast<std::size_t>(size));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(values, expected);
    EXPECT_TRUE(differs || size < 64) << size;
  }
}

}  // namespace
}  // namespace cfaa::test
