// A model on top of signals: what it is trained on, and how much of it ranks.

#include "host/train/residual/residual.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <numeric>

#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"
#include "tests/small_world.h"

namespace cfaa::test {
namespace {

constexpr SignalName kNames[] = {SignalName::popularity, SignalName::itemknn};
constexpr double kWeights[] = {0.7, 0.4};

// A domain whose reviews say nothing.
ReviewedDomain silent(const Domain& domain) {
  ReviewedDomain reviewed;
  reviewed.domain = &domain;
  reviewed.terms.offset.assign(static_cast<std::size_t>(domain.train.size()) + 1, 0);
  return reviewed;
}

class ResidualOf : public OnDevice {
 protected:
  // Signals, and embeddings that score a pair by 2 of 3 numbers.
  struct Parts {
    SignalScores signals;
    DomainEmbeddings embeddings;
  };
  Parts parts() {
    const ScaledSignals made =
        make_scaled_signals(context(), silent(world_.dataset().target), kNames, {});
    const int64_t users = world_.dataset().target.users.size(),
                  items = world_.dataset().target.items.size();
    DomainEmbeddings embeddings{3, {users, items}, {}, 0, {}};
    embeddings.z = {normal<float>(3 * users, 1), normal<float>(3 * items, 2)};
    return {SignalScores(context(), made.evidence, made.signals, kWeights,
                         history_scale(made.evidence.liked)),
            std::move(embeddings)};
  }
  std::vector<double> scores(const Scorer& scorer, int32_t user) {
    std::vector<int32_t> items(static_cast<std::size_t>(scorer.items()));
    std::iota(items.begin(), items.end(), 0);
    std::vector<double> values(items.size());
    scorer.score(user, items, values.data());
    return values;
  }

  SmallWorld world_;
};
CFAA_TEST_ON_DEVICES(ResidualOf);

TEST_P(ResidualOf, SignalsIsASum) {
  const Parts made = parts();
  const ScorerArrays mlp{true, {{2, 6, normal<float>(12, 3), {0.1f, -0.2f}}, {1, 2, {1, -1}, {0}}}};
  for (const ScorerArrays& arrays : {ScorerArrays{true, {}}, mlp}) {
    const auto model = make_scorer(context(), made.embeddings, arrays);
    const auto both = make_residual_scorer(context(), made.signals, made.embeddings, arrays, 0.5);
    const auto alone = make_residual_scorer(context(), made.signals, made.embeddings, arrays, 0);
    const UserItems nothing = make_user_items(both->users(), {});

    const std::vector<double> of_model = scores(*model, 3), of_signals = scores(*alone, 3);
    std::vector<double> expected;
    for (std::size_t i = 0; i < of_model.size(); ++i) {
      expected.push_back(of_signals[i] + 0.5 * of_model[i]);
    }
    EXPECT_TRUE(close(expected, scores(*both, 3), 1e-6));
    const int32_t user = 3;
    const Lists ranked = both->rank(context(), {&user, 1}, nothing, {.k = both->items()});
    for (std::size_t i = 0; i < ranked.item.size(); ++i) {
      EXPECT_NEAR(ranked.score[i], expected[static_cast<std::size_t>(ranked.item[i])], 1e-5);
    }
  }
}

TEST_P(ResidualOf, SignalsCountsForNothingWithoutValidation) {
  const Parts made = parts();
  const HeldOut nothing = make_held_out(world_.dataset().target, Split::valid, Mask::automatic);

  const ResidualShare share =
      choose_share(context(), made.signals, made.embeddings, {true, {}}, nothing);

  EXPECT_EQ(share.beta, 0);
  EXPECT_TRUE(share.tried.empty());
}

TEST_P(ResidualOf, SignalsCountsAsMuchAsValidationSays) {
  Parts made = parts();
  Domain domain = world_.dataset().target;
  const auto last = static_cast<int32_t>(domain.items.size()) - 1;  // nobody has it
  for (int32_t u = 0; u < domain.users.size(); ++u) {
    domain.valid.user.push_back(u);
    domain.valid.item.push_back(last);
    domain.valid.label.push_back(1);
    domain.valid.rating.push_back(5);
    domain.valid.time.push_back(0);
  }
  const HeldOut held_out = make_held_out(domain, Split::valid, Mask::automatic);
  std::fill(made.embeddings.z[kUser].begin(), made.embeddings.z[kUser].end(), 1.0f);
  std::fill(made.embeddings.z[kItem].begin(), made.embeddings.z[kItem].end(), 0.0f);
  float* of_last = made.embeddings.z[kItem].data() + 3 * last;

  of_last[0] = 8;  // the model knows better
  const double right =
      choose_share(context(), made.signals, made.embeddings, {true, {}}, held_out).beta;
  of_last[0] = -8;
  const double wrong =
      choose_share(context(), made.signals, made.embeddings, {true, {}}, held_out).beta;

  EXPECT_GT(right, 0);
  EXPECT_EQ(wrong, 0);
}

TEST(ResidualBatch, HasTheOffsetsOfItsPairsInThePositivesFold) {
  const SmallWorld world;
  const auto context = make_context("cpu", {2, 0});
  const Domain& target = world.dataset().target;
  const FoldOffsets offsets(*context, silent(target), kNames, kWeights, {}, {});
  const ModelOptions model = small_model();
  const TrainOptions train = small_training();
  BatchAssembler<float> assembler(world.data(), model, train, {nullptr, &offsets});
  const BatchLayout<float> layout(assembler.shape());
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(256, (layout.bytes() + 255) / 256 * 256), std::free);
  const Batch<float> batch = layout.at(memory.get());

  assembler.assemble(2, batch);

  EXPECT_EQ(batch.domain[kSource].offset.data, nullptr);
  const DomainBatch<float>& rows = batch.domain[kTarget];
  const auto entity = [&](std::size_t side, int64_t r) { return rows.side[side].id.index.data[r]; };
  const int64_t n = assembler.shape().n, negatives = assembler.shape().negatives[kTarget];
  ASSERT_GT(negatives, 0);
  for (int64_t i = 0; i < n; ++i) {
    int64_t row = 0;
    while (target.train.user[static_cast<std::size_t>(row)] != entity(kUser, i) ||
           target.train.item[static_cast<std::size_t>(row)] != entity(kItem, i)) {
      ++row;
    }
    for (int64_t j = -1; j < negatives; ++j) {
      const int64_t at = j < 0 ? i : n + i * negatives + j;
      const int32_t item = entity(kItem, at);
      double expected = 0;
      offsets.fill(row, {&item, 1}, &expected);
      expected -= std::log(static_cast<double>(negatives));
      EXPECT_EQ(rows.offset.data[at], static_cast<float>(expected)) << "row " << at;
    }
  }
}

}  // namespace
}  // namespace cfaa::test
