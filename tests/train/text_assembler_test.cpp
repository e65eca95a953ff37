// The words of a batch, and that no row is shown those it is to predict from.

#include "host/train/text_assembler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "host/device/make_context.h"
#include "host/train/step_runner.h"
#include "tests/small_world.h"

namespace cfaa::test {
namespace {

// Copies Z, and leaves the parameters as they are.
class CopiedZ final : public StepObserver<float> {
 public:
  void part_done(std::string_view part, const StepArrays<float>& arrays) override {
    if (part != "towers") return;
    for (int64_t r = 0; r < arrays.z.rows(); ++r) {
      z.emplace_back(arrays.z.data + r * arrays.z.stride[0],
                     arrays.z.data + r * arrays.z.stride[0] + arrays.z.cols());
    }
  }
  bool updates() const override { return false; }

  std::vector<std::vector<float>> z;  // by row
};

// "max" and "attention" of a convolution, "memory" of words.
class WordsOfABatch : public testing::TestWithParam<const char*> {
 protected:
  WordsOfABatch() : options_(model(GetParam())), train_(small_training()) {
    options_.inputs = {"id", "review"};  // so that a row's user and item can be told
    train_.domains = TrainedDomains::target;
    assembler_.emplace(world_.data(), options_, train_);
    model_.emplace(*context_, options_, AlignmentOptions{}, model_shape(world_.data()),
                   assembler_->shape());
    runner_.emplace(*context_, *model_, *assembler_, train_);
    runner_->load(0);
    model_->initialize(*context_, runner_->batch(), 3);
  }

  static ModelOptions model(const std::string& name) {
    if (name == "memory") return small_word_memory();
    return small_convolution(name == "max" ? ReviewPooling::max : ReviewPooling::attention);
  }
  bool tells_reviews_apart() const { return options_.encoder == EncoderKind::convolution; }

  std::vector<std::vector<float>> z() {
    CopiedZ copy;
    runner_->run_observed(0, copy);
    return copy.z;
  }
  const SideBatch<float>& side(std::size_t which) const {
    return runner_->host_batch().domain[kTarget].side[which];
  }
  // The training interaction that a row of the batch predicts.
  std::size_t interaction(int64_t row) const {
    const SplitRows& train = world_.dataset().target.train;
    const int32_t user = side(kUser).id.index.data[row], item = side(kItem).id.index.data[row];
    std::size_t at = 0;
    while (train.user[at] != user || train.item[at] != item) ++at;
    return at;
  }

  const std::unique_ptr<Context> context_ = make_context("cpu", {.threads = 2, .seed = 5});
  SmallWorld world_;
  ModelOptions options_;
  TrainOptions train_;
  std::optional<BatchAssembler<float>> assembler_;
  std::optional<Cfaa<float>> model_;
  std::optional<StepRunner<float>> runner_;
};

TEST_P(WordsOfABatch, OfThePredictedReviewChangeNothingInItsRow) {
  const std::vector<std::vector<float>> before = z();
  TokenizedReviews& texts = world_.texts(kTarget);
  int others = 0;

  for (int64_t row = 0; row < train_.batch_size; ++row) {
    const std::vector<int32_t> words = texts.word;
    const std::size_t own = interaction(row);
    for (int64_t w = texts.offset[own]; w < texts.offset[own + 1]; ++w) {
      int32_t& word = texts.word[static_cast<std::size_t>(w)];
      word = (word + 4) % 9;
    }
    const std::vector<std::vector<float>> after = z();
    texts.word = words;

    EXPECT_EQ(after[static_cast<std::size_t>(row)], before[static_cast<std::size_t>(row)]);
    for (std::size_t r = 0; r < after.size(); ++r) others += after[r] != before[r];
  }
  EXPECT_GT(others, 0);  // who reads the review does change
}

TEST_P(WordsOfABatch, AreListedByReviewAndByWordAlike) {
  if (!tells_reviews_apart()) return;
  for (const std::size_t s : {kUser, kItem}) {
    const TextBatch<float>& text = side(s).text;
    std::map<std::pair<int32_t, int32_t>, int32_t> word_at;  // by text and place
    for (int64_t e = 0; e + 1 < text.offset.size(); ++e) {
      for (int32_t w = text.offset.data[e]; w < text.offset.data[e + 1]; ++w) {
        word_at[{static_cast<int32_t>(e), w - text.offset.data[e]}] = text.word.data[w];
      }
    }
    std::size_t listed = 0;
    for (int32_t v = 0; v + 1 < text.word_offset.size(); ++v) {
      for (int32_t i = text.word_offset.data[v]; i < text.word_offset.data[v + 1]; ++i) {
        const auto found = word_at.find({text.word_text.data[i], text.word_place.data[i]});
        ASSERT_NE(found, word_at.end());
        EXPECT_EQ(found->second, v);
        ++listed;
      }
    }
    EXPECT_EQ(listed, word_at.size());
  }
}

TEST_P(WordsOfABatch, AreOfAllReviewsOfAUserButTheOneToBePredicted) {
  if (!tells_reviews_apart()) return;
  const SplitRows& train = world_.dataset().target.train;
  const TokenizedReviews& texts = world_.texts(kTarget);
  const TextBatch<float>& text = side(kUser).text;

  for (int64_t row = 0; row < train_.batch_size; ++row) {
    const std::size_t own = interaction(row);
    std::vector<std::vector<int32_t>> expected, found;
    for (std::size_t r = 0; r < train.user.size(); ++r) {
      if (train.user[r] != train.user[own] || r == own) continue;
      if (texts.length(static_cast<int64_t>(r)) == 0) continue;
      expected.emplace_back(texts.word.begin() + texts.offset[r],
                            texts.word.begin() + texts.offset[r + 1]);
    }
    for (int32_t e = text.reviews.offset.data[row]; e < text.reviews.offset.data[row + 1]; ++e) {
      const int32_t place = text.reviews.index.data[e];
      found.emplace_back(text.word.data + text.offset.data[place],
                         text.word.data + text.offset.data[place + 1]);
    }
    EXPECT_EQ(found, expected);
  }
}

TEST_P(WordsOfABatch, OfAMemoryAscendWithoutRepeats) {
  if (tells_reviews_apart()) return;
  const EdgeLists<float>& words = side(kItem).text.words;

  ASSERT_GT(words.offset.data[words.offset.size() - 1], 0);
  for (int64_t row = 0; row + 1 < words.offset.size(); ++row) {
    const std::vector<int32_t> own(words.index.data + words.offset.data[row],
                                   words.index.data + words.offset.data[row + 1]);
    EXPECT_LE(own.size(), 6u);
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end(), std::less_equal<>()));
  }
}

INSTANTIATE_TEST_SUITE_P(Encoders, WordsOfABatch, testing::Values("max", "attention", "memory"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cfaa::test
