// Weights are fitted on pairs that the signals know nothing of.

#include "host/signals/out_of_fold.h"

#include <gtest/gtest.h>

#include <cmath>

#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"
#include "tests/signals/small_reviews.h"

namespace cfaa::test {
namespace {

// Every user's rows of every signal, made from the folds other than `fold`.
std::vector<double> rows_without_fold(Context& context, const SmallReviews& reviews, int32_t fold,
                                      SignalName name) {
  const ReviewedDomain reviewed = reviews.read(context.threads());
  const std::vector<int32_t> folds = folds_of_rows(reviews.domain, {});
  std::vector<char> used;
  for (const int32_t f : folds) used.push_back(f != fold);
  const ScaledSignals made = make_scaled_signals(context, reviewed, {&name, 1}, {}, used);
  std::vector<double> all;
  for (int32_t u = 0; u < reviewed.users(); ++u) {
    std::vector<double> rows(static_cast<std::size_t>(reviewed.items()));
    scaled_rows(made, u, rows.data());
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

class OutOfFold : public OnDevice {};
CFAA_TEST_ON_DEVICES(OutOfFold);

TEST_P(OutOfFold, SignalsOfAnEdgeDoNotChangeWithTheEdge) {
  const SmallReviews reviews(40, 16);
  std::size_t edge = reviews.texts.size() / 2;
  while (reviews.domain.train.label[edge] == 0) ++edge;
  const int32_t fold = folds_of_rows(reviews.domain, {})[edge];
  SmallReviews disliked = reviews, rewritten = reviews, removed = reviews;
  disliked.domain.train.label[edge] = 1 - disliked.domain.train.label[edge];
  disliked.domain.train.rating[edge] = 2;
  rewritten.texts[edge] = "kind0 kind1 kind2 maker0 maker1 zither";
  rewritten.sums[edge * SmallReviews::kWidth] += 100;
  rewritten.counts[edge] += 3;
  removed.remove(edge);
  for (const SignalName name : every_signal()) {
    const std::vector<double> expected = rows_without_fold(context(), reviews, fold, name);

    EXPECT_TRUE(rows_without_fold(context(), disliked, fold, name) == expected) << name_of(name);
    EXPECT_TRUE(rows_without_fold(context(), rewritten, fold, name) == expected) << name_of(name);
    EXPECT_TRUE(rows_without_fold(context(), removed, fold, name) == expected) << name_of(name);

    const int32_t another = (fold + 1) % 5;
    EXPECT_TRUE(rows_without_fold(context(), removed, another, name) !=
                rows_without_fold(context(), reviews, another, name))
        << name_of(name) << ": the edge does take part in the other folds";
  }
}

TEST_P(OutOfFold, GroupsHoldEveryPositiveOnceAndNoKnownItemAsANegative) {
  const SmallReviews reviews(40, 16);
  const ReviewedDomain reviewed = reviews.read(context().threads());
  const SignalName names[] = {SignalName::popularity, SignalName::itemknn};

  const ListwiseGroups groups = out_of_fold_groups(context(), reviewed, names, {}, {});

  int64_t positives = 0;
  for (const float label : reviews.domain.train.label) positives += label > 0;
  EXPECT_EQ(groups.edges(), positives);
  EXPECT_EQ(groups.positives.size(), static_cast<std::size_t>(2 * positives));
  EXPECT_EQ(groups.negatives.size(), static_cast<std::size_t>(2 * groups.negative_offset.back()));
  for (const float r : groups.stands_for) EXPECT_EQ(r, 1.0f);
}

TEST_P(OutOfFold, DrawnNegativesStandForAll) {
  const SmallReviews reviews(40, 16);
  const ReviewedDomain reviewed = reviews.read(context().threads());
  const SignalName names[] = {SignalName::popularity};
  FoldOptions folds;
  const ListwiseGroups all = out_of_fold_groups(context(), reviewed, names, {}, folds);
  folds.candidates = 3;

  const ListwiseGroups drawn = out_of_fold_groups(context(), reviewed, names, {}, folds);

  ASSERT_EQ(drawn.groups(), all.groups());
  for (std::size_t g = 0; g < drawn.stands_for.size(); ++g) {
    const auto of_all = all.negative_offset[g + 1] - all.negative_offset[g];
    const auto of_drawn = drawn.negative_offset[g + 1] - drawn.negative_offset[g];
    EXPECT_EQ(of_drawn, std::min<int64_t>(3, of_all));
    EXPECT_TRUE(close(drawn.stands_for[g] * static_cast<float>(of_drawn),
                      static_cast<float>(of_all), 1e-6));
  }
}

TEST_P(OutOfFold, RowsThatAreNotKeptLeaveNoTrace) {
  const SmallReviews reviews(40, 16);
  SmallReviews without = reviews;
  std::vector<char> kept(reviews.texts.size(), 1);
  for (const std::size_t row : {90u, 41u, 7u}) {
    kept[row] = 0;
    without.remove(row);
  }
  const SignalName names[] = {SignalName::content, SignalName::cease};

  const ListwiseGroups a =
      out_of_fold_groups(context(), reviews.read(context().threads()), names, {}, {}, kept);
  const ListwiseGroups b =
      out_of_fold_groups(context(), without.read(context().threads()), names, {}, {});

  EXPECT_EQ(a.positives, b.positives);
  EXPECT_EQ(a.negatives, b.negatives);
}

ListwiseGroups two_groups() {
  ListwiseGroups groups;
  groups.signals = 2;
  groups.positive_offset = {0, 2, 3};
  groups.negative_offset = {0, 3, 4};
  groups.positives = {1, 0.5f, 0.2f, 2, -0.3f, 0.1f};
  groups.negatives = {0.1f, 0.3f, 1.1f, -1, 0, 0.4f, 0.7f, 0.7f};
  groups.stands_for = {1, 2.5f};
  return groups;
}

TEST(ListwiseWeights, LossAndDerivativesAreThoseOfTheSoftmax) {
  ThreadPool threads(2);
  const ListwiseGroups groups = two_groups();
  const ListwiseTerm terms[] = {{&groups, 0.7}};
  const std::vector<double> w = {0.4, -0.6};
  const auto value = [&](double a, double b) {
    const std::vector<double> at = {a, b};
    return listwise_loss(threads, terms, 0.3, at).value;
  };

  const ListwiseLoss loss = listwise_loss(threads, terms, 0.3, w);

  const auto s = [&](double a, double b) { return std::exp(0.4 * a - 0.6 * b); };
  const double first = s(.1f, .3f) + s(1.1f, -1) + s(0, .4f), second = 2.5 * s(.7f, .7f);
  const double by_hand =
      0.7 * (-std::log(s(1, .5) / (s(1, .5) + first)) - std::log(s(.2f, 2) / (s(.2f, 2) + first)) -
             std::log(s(-.3f, .1f) / (s(-.3f, .1f) + second))) +
      0.15 * (0.16 + 0.36);
  EXPECT_TRUE(close(loss.value, by_hand, 1e-12));
  const double h = 1e-5;
  EXPECT_TRUE(close(loss.gradient[0], (value(.4 + h, -.6) - value(.4 - h, -.6)) / (2 * h), 1e-7));
  EXPECT_TRUE(close(loss.gradient[1], (value(.4, -.6 + h) - value(.4, -.6 - h)) / (2 * h), 1e-7));
  const std::vector<double> up = {0.4 + h, -0.6}, down = {0.4 - h, -0.6};
  const auto g_up = listwise_loss(threads, terms, 0.3, up).gradient;
  const auto g_down = listwise_loss(threads, terms, 0.3, down).gradient;
  EXPECT_TRUE(close(loss.hessian[0], (g_up[0] - g_down[0]) / (2 * h), 1e-6));
  EXPECT_TRUE(close(loss.hessian[2], (g_up[1] - g_down[1]) / (2 * h), 1e-6));
}

TEST(ListwiseWeights, FitEndsWhereTheGradientVanishesOrPushesBelowZero) {
  ThreadPool threads(2);
  // Six signals of which some speak against the positives.
  ListwiseGroups groups;
  groups.signals = 6;
  const Philox random{3};
  for (int g = 0; g < 40; ++g) {
    const auto value = [&](int row, int s) {
      const auto at = static_cast<uint64_t>(64 * g + 6 * row + s);
      const double tilt = row == 0 ? 0.6 * (s % 3 - 1) : 0;
      return static_cast<float>(random(at, 1).word[0] / 2147483648.0 - 1 + tilt);
    };
    for (int s = 0; s < 6; ++s) groups.positives.push_back(value(0, s));
    for (int n = 1; n < 9; ++n) {
      for (int s = 0; s < 6; ++s) groups.negatives.push_back(value(n, s));
    }
    groups.positive_offset.push_back(g + 1);
    groups.negative_offset.push_back(8 * (g + 1));
    groups.stands_for.push_back(1);
  }
  const ListwiseTerm terms[] = {{&groups, 1}};

  const std::vector<double> w = fit_listwise(threads, terms, 0.1, 6);

  const std::vector<double> gradient = listwise_loss(threads, terms, 0.1, w).gradient;
  int at_zero = 0;
  for (std::size_t a = 0; a < w.size(); ++a) {
    EXPECT_GE(w[a], 0);
    at_zero += w[a] == 0;
    if (w[a] > 0) {
      EXPECT_LE(std::abs(gradient[a]), 1e-3) << "weight " << a;
    } else {
      EXPECT_GE(gradient[a], 0) << "weight " << a;
    }
  }
  EXPECT_GE(at_zero, 2) << "signals that speak against the positives";
  EXPECT_LE(at_zero, 4);
}

TEST(ListwiseWeights, NdcgIsThatOfTheTopTen) {
  ListwiseGroups groups;  // one signal, three users
  groups.signals = 1;
  groups.positives = {5, 1, 2, 3};
  groups.positive_offset = {0, 2, 3, 4};
  groups.negatives = {4, 3, 2, 2, 4};
  groups.negative_offset = {0, 2, 4, 5};
  groups.stands_for = {1, 1, 20};
  ThreadPool threads(2);
  const double one = 1;

  const std::vector<double> ndcg = listwise_ndcg(threads, groups, {&one, 1});

  ASSERT_EQ(ndcg.size(), 3u);
  EXPECT_NEAR(ndcg[0], (1 + 1 / std::log2(5)) / (1 + 1 / std::log2(3)), 1e-12)
      << "first and fourth of four";
  EXPECT_NEAR(ndcg[1], 1 / std::log2(3), 1e-12) << "level with both others: in the middle";
  EXPECT_EQ(ndcg[2], 0) << "the one before it stands for twenty";
}

TEST(ListwiseWeights, ASignalThatTellsThePositivesGetsTheWeight) {
  ThreadPool threads(1);
  ListwiseGroups groups;
  groups.signals = 2;
  for (int g = 0; g < 50; ++g) {
    groups.positives.insert(groups.positives.end(), {1.0f, static_cast<float>(g % 3) - 1});
    groups.positive_offset.push_back(g + 1);
    for (int n = 0; n < 4; ++n) {
      groups.negatives.insert(groups.negatives.end(),
                              {n == 0 ? 1.0f : 0.0f, static_cast<float>((g + n) % 3) - 1});
    }
    groups.negative_offset.push_back(4 * (g + 1));
    groups.stands_for.push_back(1);
  }
  const ListwiseTerm terms[] = {{&groups, 1}};

  const std::vector<double> w = fit_listwise(threads, terms, 1, 2);

  EXPECT_GT(w[0], 1);
  EXPECT_LT(std::abs(w[1]), 0.2);
}

}  // namespace
}  // namespace cfaa::test
