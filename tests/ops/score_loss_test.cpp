#include "host/ops/score_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/compare.h"
#include "tests/differences.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class ScoreLoss : public OnDevice {};
CFAA_TEST_ON_DEVICES(ScoreLoss);

template <class T>
struct Result {
  T loss;
  std::vector<T> dscore;
};

template <class T>
Result<T> entropy(Context& context, const std::vector<T>& score, const std::vector<T>& label,
                  const std::vector<T>& weight) {
  const auto n = static_cast<int64_t>(score.size());
  const Tensor<T, 1> s(context, {n}, score.data()), y(context, {n}, label.data()),
      w(context, {n}, weight.data()), loss(context, {1}), ds(context, {n});

  cross_entropy<T>(context, s, y, w, loss, ds);

  return {loss.to_host()[0], ds.to_host()};
}

template <class T>
Result<T> pairwise(Context& context, const std::vector<T>& score, int64_t negatives,
                   const std::vector<T>& weight) {
  const auto n = static_cast<int64_t>(score.size());
  const Tensor<T, 1> s(context, {n}, score.data()), w(context, {n}, weight.data()),
      loss(context, {1}), ds(context, {n});

  pairwise_loss<T>(context, s, negatives, w, loss, ds);

  return {loss.to_host()[0], ds.to_host()};
}

template <class T>
Result<T> self_training(Context& context, const std::vector<T>& score, const std::vector<T>& weight,
                        const SureScores& sure = {}) {
  const auto n = static_cast<int64_t>(score.size());
  const Tensor<T, 1> s(context, {n}, score.data()), w(context, {n}, weight.data()),
      loss(context, {1}), ds(context, {n});

  self_training_loss<T>(context, s, w, sure, loss, ds);

  return {loss.to_host()[0], ds.to_host()};
}

// Labels 0 and 1 in turn; weights from 0.5 on, every seventh 0.
template <class T>
std::vector<T> labels(std::size_t n) {
  std::vector<T> result;
  for (std::size_t i = 0; i < n; ++i) result.push_back(static_cast<T>(i % 2));
  return result;
}
template <class T>
std::vector<T> weights(std::size_t n) {
  std::vector<T> result;
  for (std::size_t i = 0; i < n; ++i) {
    result.push_back(i % 7 == 6 ? T(0) : T(0.5) + static_cast<T>(i % 3));
  }
  return result;
}

TEST_P(ScoreLoss, CrossEntropyGivesTheHandMadeResult) {
  // s = log 3: sigma = 3/4; -log 3/4 for a positive, log 4 for a negative
  const double s = std::log(3.0);

  const auto found = entropy<double>(context(), {s, s, 0}, {1, 0, 1}, {2, 1, 1});

  EXPECT_TRUE(close(found.loss, 2 * std::log(4.0 / 3) + std::log(4.0) + std::log(2.0), 1e-15));
  EXPECT_TRUE(close(found.dscore, std::vector<double>{-0.5, 0.75, -0.5}, 1e-15));
}

TEST_P(ScoreLoss, PairwiseGivesTheHandMadeResult) {
  // two rows with two negatives each: differences log 3, 0 and -log 3, not counted
  const double s = std::log(3.0);

  const auto found = pairwise<double>(context(), {0, s, s, 0, 0, 9}, 2, {7, 7, 1, 2, 4, 0});

  EXPECT_TRUE(close(found.loss, std::log(4.0) + 2 * std::log(2.0) + 4 * std::log(4.0 / 3), 1e-15));
  EXPECT_TRUE(close(found.dscore, std::vector<double>{-1.75, -1, 0.75, 1, 1, 0}, 1e-15));
}

TEST_P(ScoreLoss, SelfTrainingDrawsSureScoresToTheNearerEnd) {
  // p = 9/10 and 1/10 are sure, 3/4 is not, and the last row is left out
  const double nine = std::log(9.0), three = std::log(3.0);

  const auto found = self_training<double>(context(), {nine, -nine, three, 5}, {1, 3, 1, 0});

  EXPECT_TRUE(close(found.loss, (0.9 * std::log(10.0 / 9) + 0.1 * std::log(10.0)) / 2, 1e-14));
  EXPECT_TRUE(close(found.dscore,
                    std::vector<double>{0.09 * (std::log(10.0 / 9) - 1) / 2,
                                        0.09 * (std::log(10.0) - 1) / 2, 0, 0},
                    1e-14));
  EXPECT_LT(found.dscore[0], 0);
  EXPECT_GT(found.dscore[1], 0);
}

TEST_P(ScoreLoss, SelfTrainingIsZeroWhereNothingIsSure) {
  const auto found = self_training<float>(context(), {0, 0.1f}, {1, 1});

  EXPECT_EQ(found.loss, 0);
  EXPECT_EQ(found.dscore, std::vector<float>(2, 0.0f));
}

TEST_P(ScoreLoss, SelfTrainingMatchesPlainLoopsAtOddSizes) {
  for (const int64_t n : {1, 31, 33, 257, 5000}) {
    const auto score = normal<float>(n, 1, 0, 3);
    const auto w = weights<float>(static_cast<std::size_t>(n));
    double loss = 0, count = 0;
    for (std::size_t i = 0; i < score.size(); ++i) {
      const double p = 1 / (1 + std::exp(-static_cast<double>(score[i])));
      if (w[i] == 0 || (p >= 0.2 && p <= 0.8)) continue;
      loss -= p * std::log(p);
      ++count;
    }

    const auto found = self_training<float>(context(), score, w);

    EXPECT_TRUE(close(found.loss, count > 0 ? loss / count : 0, 1e-6)) << n;
  }
}

TEST_P(ScoreLoss, CrossEntropyMatchesPlainLoopsAtOddSizes) {
  for (const int64_t n : {1, 31, 32, 33, 257, 5000}) {
    const auto size = static_cast<std::size_t>(n);
    const auto score = normal<float>(n, 1, 0, 3);
    const auto y = labels<float>(size), w = weights<float>(size);
    double loss = 0;
    std::vector<double> gradient;
    for (std::size_t i = 0; i < size; ++i) {
      const double s = score[i];
      loss += w[i] * (std::log(1 + std::exp(s)) - y[i] * s);
      gradient.push_back(w[i] * (1 / (1 + std::exp(-s)) - y[i]));
    }

    const auto found = entropy<float>(context(), score, y, w);

    EXPECT_TRUE(close(found.loss, loss, 1e-7)) << n;
    EXPECT_TRUE(close(found.dscore, gradient, 1e-7)) << n;
  }
}

TEST_P(ScoreLoss, PairwiseMatchesPlainLoopsAtOddSizes) {
  for (const int64_t n : {1, 31, 33, 257, 1500}) {
    for (const int64_t negatives : {1, 4}) {
      const int64_t all = n * (1 + negatives);
      const auto score = normal<float>(all, 1, 0, 3);
      const auto w = weights<float>(static_cast<std::size_t>(all));
      double loss = 0;
      std::vector<double> gradient(static_cast<std::size_t>(all));
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t j = 0; j < negatives; ++j) {
          const auto positive = static_cast<std::size_t>(r);
          const auto negative = static_cast<std::size_t>(n + r * negatives + j);
          const double x = static_cast<double>(score[negative]) - score[positive];
          const double ds = w[negative] / (1 + std::exp(-x));
          loss += w[negative] * std::log(1 + std::exp(x));
          gradient[negative] += ds;
          gradient[positive] -= ds;
        }
      }

      const auto found = pairwise<float>(context(), score, negatives, w);

      EXPECT_TRUE(close(found.loss, loss, 1e-7)) << n;
      EXPECT_TRUE(close(found.dscore, gradient, 1e-7)) << n;
    }
  }
}

TEST_P(ScoreLoss, GradientsEqualCentralDifferences) {
  const auto score = normal<double>(12, 1, 0, 2);
  const auto y = labels<double>(12), w = weights<double>(12);

  const auto by_entropy = entropy<double>(context(), score, y, w);
  const auto by_pairs = pairwise<double>(context(), score, 3, w);
  const auto by_itself = self_training<double>(context(), score, w, {0.45, 0.55});

  EXPECT_TRUE(close(by_entropy.dscore,
                    central_differences(score,
                                        [&](const std::vector<double>& s) {
                                          return entropy<double>(context(), s, y, w).loss;
                                        }),
                    1e-9));
  EXPECT_TRUE(close(by_pairs.dscore,
                    central_differences(score,
                                        [&](const std::vector<double>& s) {
                                          return pairwise<double>(context(), s, 3, w).loss;
                                        }),
                    1e-9));
  EXPECT_TRUE(
      close(by_itself.dscore,
            central_differences(score,
                                [&](const std::vector<double>& s) {
                                  return self_training<double>(context(), s, w, {0.45, 0.55}).loss;
                                }),
            1e-9));
}

TEST_P(ScoreLoss, StaysExactForExtremeScores) {
  const auto found = entropy<float>(context(), {1e4f, -1e4f, 1e4f, -1e4f, -3e38f}, {1, 0, 0, 1, 0},
                                    {1, 1, 1, 1, 1});
  const auto pairs = pairwise<float>(context(), {1e4f, -1e4f, -1e4f, 1e4f}, 1, {0, 0, 1, 1});

  EXPECT_EQ(found.loss, 2e4f);
  EXPECT_EQ(found.dscore, (std::vector<float>{0, 0, 1, -1, 0}));
  EXPECT_EQ(pairs.loss, 2e4f);
  EXPECT_EQ(pairs.dscore, (std::vector<float>{0, -1, 0, 1}));
  EXPECT_NO_THROW(context().check_faults());
}

// e^-50 = 2e-22 is far below the loss of a float in (0, 1), but it is the whole gradient.
TEST_P(ScoreLoss, KeepsSmallGradients) {
  const auto found = entropy<float>(context(), {-50}, {0}, {1});

  EXPECT_TRUE(close(found.dscore[0], std::exp(-50.0), 1e-7));
  EXPECT_TRUE(close(found.loss, std::exp(-50.0), 1e-7));
}

TEST_P(ScoreLoss, LossThatIsNotFiniteSetsTheLatchAndNamesTheRow) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto message = [&](const std::function<void()>& work) -> std::string {
    work();
    try {
      context().check_faults();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  std::vector<float> score(1000, 0.5f), ones(1000, 1.0f);
  score[700] = score[900] = nan;

  EXPECT_NE(message([&] { entropy<float>(context(), score, ones, ones); }).find("row 700"),
            std::string::npos);
  EXPECT_NE(message([&] {
              pairwise<float>(context(), {0, 1, 2, nan}, 1, {1, 1, 1, 1});
            }).find("row 1 "),
            std::string::npos);
  // The terms are finite; their sum is not in float.
  EXPECT_NE(message([&] {
              entropy<float>(context(), {3e38f, 3e38f}, {0, 0}, {1, 1});
            }).find("L_C became"),
            std::string::npos);
}

TEST_P(ScoreLoss, RowsOfWeightZeroAreNotLookedAt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();

  const auto found = entropy<float>(context(), {0, nan}, {1, 1}, {1, 0});
  const auto pairs = pairwise<float>(context(), {0, 0, 0, nan}, 1, {0, 0, 1, 0});

  EXPECT_TRUE(close(found.loss, std::log(2.0), 1e-7));
  EXPECT_EQ(found.dscore, (std::vector<float>{-0.5f, 0}));
  EXPECT_TRUE(close(pairs.loss, std::log(2.0), 1e-7));
  EXPECT_EQ(pairs.dscore, (std::vector<float>{-0.5f, 0, 0.5f, 0}));
  EXPECT_NO_THROW(context().check_faults());
}

}  // namespace
}  // namespace cfaa::test
