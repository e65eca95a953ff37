#include "host/ops/pair_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bench/reference/layers.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class PairScores : public OnDevice {};
CFAA_TEST_ON_DEVICES(PairScores);

template <class T>
std::vector<T> run(Context& context, const Mlp<T>& mlp, const std::vector<T>& users,
                   const std::vector<T>& items, const std::vector<T>* start = nullptr) {
  const int64_t r = static_cast<int64_t>(users.size()) / mlp.units;
  const int64_t c = static_cast<int64_t>(items.size()) / mlp.units;
  std::vector<Tensor<T, 2>> weights;
  std::vector<Tensor<T, 1>> biases;
  std::vector<PairLayer<T>> layers;
  for (const MlpLayer<T>& layer : mlp.layers) {
    weights.emplace_back(context, std::array{layer.out, layer.in}, layer.weight.data());
    biases.emplace_back(context, std::array{layer.out}, layer.bias.data());
    layers.push_back({weights.back().view(), biases.back().view()});
  }
  const PaddedMatrix<T> u(context, r, mlp.units, users, 3), i(context, c, mlp.units, items, 1);
  const PaddedMatrix<T> scores(
      context, r, c,
      start != nullptr
          ? *start
          : std::vector<T>(static_cast<std::size_t>(r * c), std::numeric_limits<T>::quiet_NaN()),
      2);

  pair_scores<T>(context, u.view(), i.view(), layers, start != nullptr, scores.view());

  return scores.to_host();
}

TEST_P(PairScores, GivesTheHandMadeResult) {
  // relu((1 -2) + (1 1)) = (2 0), relu((1 -2) + (-3 5)) = (0 3); weights (10 -100), bias 1
  const Mlp<double> mlp{2, {{2, 1, {10, -100}, {1}}}};
  // on top of (2 0) and (0 3): relu(2x + y - 1), relu(-y) -> (3 0), (2 0); weights (1 1), bias 5
  const Mlp<double> deeper{2, {{2, 2, {2, 1, 0, -1}, {-1, 0}}, {2, 1, {1, 1}, {5}}}};

  EXPECT_EQ(run(context(), mlp, {1, -2}, {1, 1, -3, 5}), (std::vector<double>{21, -299}));
  EXPECT_EQ(run(context(), deeper, {1, -2}, {1, 1, -3, 5}), (std::vector<double>{8, 7}));
}

TEST_P(PairScores, OneHiddenLayerMatchesPlainLoopsAtOddSizes) {
  for (const int64_t units : {1, 31, 33, 130}) {
    const auto mlp = random_mlp<double>({units});
    const auto narrow = random_mlp<float>({units});
    for (const auto& [r, c] : {std::pair<int64_t, int64_t>{1, 1}, {1, 257}, {33, 31}, {65, 64}}) {
      const auto users = normal<double>(r * units, 1), items = normal<double>(c * units, 2);
      const auto few = normal<float>(r * units, 1), more = normal<float>(c * units, 2);

      EXPECT_TRUE(close(run(context(), mlp, users, items), mlp_scores(mlp, users, items), 1e-14))
          << units << " " << r << " " << c;
      EXPECT_TRUE(close(run(context(), narrow, few, more), mlp_scores(narrow, few, more), 1e-6))
          << units << " " << r << " " << c;
    }
  }
}

TEST_P(PairScores, FurtherLayersMatchPlainLoopsAtOddSizes) {
  for (const auto& units : {std::vector<int64_t>{1, 1}, {33, 7}, {31, 32, 5}}) {
    const auto mlp = random_mlp<double>(units);
    const auto narrow = random_mlp<float>(units);
    for (const auto& [r, c] : {std::pair<int64_t, int64_t>{1, 1}, {3, 33}, {2, 300}}) {
      const auto users = normal<double>(r * units[0], 1), items = normal<double>(c * units[0], 2);
      const auto few = normal<float>(r * units[0], 1), more = normal<float>(c * units[0], 2);

      EXPECT_TRUE(close(run(context(), mlp, users, items), mlp_scores(mlp, users, items), 1e-13))
          << units[0] << " " << r << " " << c;
      EXPECT_TRUE(close(run(context(), narrow, few, more), mlp_scores(narrow, few, more), 2e-6))
          << units[0] << " " << r << " " << c;
    }
  }
}

TEST_P(PairScores, AddsToWhatIsThere) {
  for (const auto& units : {std::vector<int64_t>{9}, {9, 4}}) {
    const auto mlp = random_mlp<double>(units);
    const auto users = normal<double>(5 * 9, 1), items = normal<double>(37 * 9, 2);
    const auto start = normal<double>(5 * 37, 3);
    auto expected = mlp_scores(mlp, users, items);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += start[i];

    EXPECT_TRUE(close(run(context(), mlp, users, items, &start), expected, 1e-13));
  }
}

// Units whose sums are far below zero contribute nothing, however large they are.
TEST_P(PairScores, PairWithEveryUnitOffScoresTheBiasExactly) {
  const auto mlp = random_mlp<float>({33});
  const auto users = normal<float>(5 * 33, 1, -1000, 300), items = normal<float>(40 * 33, 2, -1500);

  const auto scores = run(context(), mlp, users, items);

  EXPECT_EQ(scores, std::vector<float>(200, mlp.layers[0].bias[0]));
}

TEST_P(PairScores, NanOfAUserOrAnItemReachesItsScores) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& units : {std::vector<int64_t>{33}, {33, 4}}) {
    const auto mlp = random_mlp<float>(units);
    auto users = normal<float>(3 * 33, 1), items = normal<float>(40 * 33, 2);
    users[1 * 33 + 20] = nan;
    items[7 * 33 + 2] = nan;

    const auto scores = run(context(), mlp, users, items);

    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 40; ++c) {
        EXPECT_EQ(std::isnan(scores[r * 40 + c]), r == 1 || c == 7) << r << " " << c;
      }
    }
  }
}

// A block of users and items gives the bits that the whole gives, on any number of threads.
TEST_P(PairScores, BitsDoNotDependOnTheBlockOrTheThreads) {
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});
  for (const auto& units : {std::vector<int64_t>{33}, {33, 20}}) {
    const auto mlp = random_mlp<float>(units);
    const auto users = normal<float>(13 * 33, 1), items = normal<float>(300 * 33, 2);
    const auto whole = run(context(), mlp, users, items);

    EXPECT_EQ(run(*one, mlp, users, items), whole);
    const std::vector<float> few(users.begin() + 5 * 33, users.begin() + 8 * 33);
    const std::vector<float> some(items.begin() + 101 * 33, items.begin() + 138 * 33);
    const auto block = run(*one, mlp, few, some);
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 37; ++c) {
        EXPECT_EQ(block[r * 37 + c], whole[(r + 5) * 300 + c + 101]) << r << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace cfaa::test
