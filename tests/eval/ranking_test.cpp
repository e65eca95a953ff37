// Lists against plain sorting, on every device, for every kind of scorer.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "host/device/make_context.h"
#include "host/eval/scorer.h"
#include "host/ops/top_k.h"
#include "tests/eval/rankings.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Ranking : public OnDevice {
 protected:
  template <class T>
  void expect_sorted(const Factors<T>& factors, const UserItems& masked, RankingOptions options) {
    const auto users = all_users(factors.users);
    const Lists expected =
        sorted_lists(users, factors.items, masked, options.k,
                     [&](int32_t user, int32_t item) { return factors.score(user, item); });

    const Lists lists = factors.scorer().rank(context(), users, masked, options);

    EXPECT_TRUE(same(lists, expected));
  }
};
CFAA_TEST_ON_DEVICES(Ranking);

TEST_P(Ranking, OrdersAHandCheckedCase) {
  // User 0 scores the items 3, 1, 3, -2; user 1 scores them 0, 2, 0, 4.
  const Factors<float> factors{2, 4, 2, {1, 0, 0, 1}, {3, 0, 1, 2, 3, 0, -2, 4}};
  const UserItems masked = make_user_items(2, {{1, 3}});

  const Lists lists = factors.scorer().rank(context(), all_users(2), masked, {.k = 3});

  EXPECT_EQ(lists.item, (std::vector<int32_t>{0, 2, 1, 1, 0, 2}));
  EXPECT_EQ(lists.score, (std::vector<double>{3, 3, 1, 2, 0, 0}));
}

TEST_P(Ranking, EqualsSortingByExactScores) {
  expect_sorted(random_factors<float>(37, 700, 19, 1), random_items(37, 700, 30, 2), {.k = 20});
}

TEST_P(Ranking, EqualsSortingWithManyTies) {
  expect_sorted(random_factors<float>(24, 1500, 3, 3, 2), random_items(24, 1500, 40, 4), {.k = 10});
}

TEST_P(Ranking, EqualsSortingWhenEveryScoreIsEqual) {
  Factors<float> factors = random_factors<float>(5, 1400, 4, 5);
  std::fill(factors.u.begin(), factors.u.end(), 0.3f);
  std::fill(factors.v.begin(), factors.v.end(), 0.7f);
  std::fill_n(factors.u.begin(), factors.d, 0.0f);

  expect_sorted(factors, random_items(5, 1400, 9, 6), {.k = 7});
}

TEST_P(Ranking, SeesDifferencesThatFloatDoesNot) {
  // Scores 1 + i * 2^-40 are one number in float; in double they rise with the item.
  Factors<double> factors{1, 600, 2, {1, 0x1p-40}, {}};
  for (int i = 0; i < 600; ++i) {
    factors.v.push_back(1);
    factors.v.push_back(i);
  }

  const Lists lists = factors.scorer().rank(context(), all_users(1), no_items(1), {.k = 3});

  EXPECT_EQ(lists.item, (std::vector<int32_t>{599, 598, 597}));
}

TEST_P(Ranking, SeesThroughCancellation) {
  // Large terms cancel, so float scores are all noise of about |u||v| 2^-24.
  Factors<float> factors = random_factors<float>(6, 1300, 10, 7);
  for (int64_t item = 0; item < factors.items; ++item) {
    float* v = factors.v.data() + item * factors.d;
    v[0] = 5000.0f + v[0];
    v[1] = -v[0];
  }
  for (int64_t user = 0; user < factors.users; ++user) {
    float* u = factors.u.data() + user * factors.d;
    u[0] = u[1] = 30;
    for (int64_t i = 2; i < factors.d; ++i) u[i] *= 1e-3f;
  }

  expect_sorted(factors, no_items(6), {.k = 12});
}

TEST_P(Ranking, HoldsForExtremeMagnitudes) {
  for (const double scale : {1e-30, 1e30, 1e-44, 3e38}) {
    Factors<float> factors = random_factors<float>(4, 300, 5, 8);
    for (float& u : factors.u) u = static_cast<float>(std::fmod(u, 1.0) * scale);
    for (float& v : factors.v) v = static_cast<float>(std::fmod(v, 1.0) * scale);
    expect_sorted(factors, no_items(4), {.k = 9});
  }
  Factors<double> factors = random_factors<double>(4, 300, 5, 9);
  for (double& u : factors.u) u *= 1e140;
  for (double& v : factors.v) v *= 1e-150;
  expect_sorted(factors, no_items(4), {.k = 9});
}

TEST_P(Ranking, HoldsForItemsOfVeryDifferentNorms) {
  Factors<float> factors = random_factors<float>(9, 1200, 8, 10);
  for (int64_t item = 0; item < factors.items; ++item) {
    for (int64_t i = 0; i < factors.d; ++i) {
      factors.v[static_cast<std::size_t>(item * factors.d + i)] *=
          std::pow(10.0f, static_cast<float>(item % 13 - 6));
    }
  }

  expect_sorted(factors, no_items(9), {.k = 20, .item_block = 100});
}

TEST_P(Ranking, DoesNotDependOnBlockSizes) {
  const auto factors = random_factors<float>(33, 900, 7, 11, 3);
  const UserItems masked = random_items(33, 900, 50, 12);
  for (const int64_t user_block : {1, 5, 32, 64}) {
    for (const int64_t item_block : {37, 512, 1000}) {
      expect_sorted(factors, masked, {.k = 15, .user_block = user_block, .item_block = item_block});
    }
  }
}

TEST_P(Ranking, DoesNotDependOnTheNumberOfThreads) {
  const auto factors = random_factors<double>(40, 800, 6, 13, 2);
  const UserItems masked = random_items(40, 800, 20, 14);
  const auto users = all_users(40);
  const Lists expected = factors.scorer().rank(context(), users, masked, {.k = 10});
  for (const int threads : {1, 2, 5}) {
    const auto other = make_context(GetParam(), {.threads = threads});

    EXPECT_TRUE(same(factors.scorer().rank(*other, users, masked, {.k = 10}), expected));
  }
}

TEST_P(Ranking, ShortListsEndInMinusOne) {
  const auto factors = random_factors<float>(3, 5, 4, 15);
  const UserItems masked =
      make_user_items(3, {{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}, {2, 4}});

  const Lists lists = factors.scorer().rank(context(), all_users(3), masked, {.k = 8});

  EXPECT_TRUE(same(lists, sorted_lists(lists.user, 5, masked, 8,
                                       [&](int32_t u, int32_t i) { return factors.score(u, i); })));
  EXPECT_EQ(std::count(lists.item.begin(), lists.item.end(), -1), 3 + 8 + 5);
}

TEST_P(Ranking, MakesTheLongestLists) {
  expect_sorted(random_factors<float>(2, 3000, 3, 16, 4), random_items(2, 3000, 9, 17),
                {.k = kMaxTopK});
}

TEST_P(Ranking, RanksOnlyTheUsersAskedFor) {
  const auto factors = random_factors<float>(9, 60, 4, 18);
  const std::vector<int32_t> users = {1, 4, 8};

  const Lists lists = factors.scorer().rank(context(), users, no_items(9), {.k = 5});

  EXPECT_TRUE(same(lists, sorted_lists(users, 60, no_items(9), 5,
                                       [&](int32_t u, int32_t i) { return factors.score(u, i); })));
}

TEST_P(Ranking, InfiniteEmbeddingsHaveAnOrder) {
  Factors<float> factors = random_factors<float>(3, 700, 2, 19);
  for (float& u : factors.u) u = std::abs(u) + 0.1f;
  factors.v[2 * 600] = INFINITY;
  factors.v[2 * 50] = INFINITY;
  factors.v[2 * 7] = -INFINITY;
  factors.u[2 * 2] = INFINITY;
  for (int64_t item = 0; item < factors.items; ++item) {
    if (factors.v[static_cast<std::size_t>(2 * item)] == 0) factors.v[2 * item] = 1;
  }

  expect_sorted(factors, no_items(3), {.k = 6});
  expect_sorted(factors, no_items(3), {.k = 700});
}

TEST_P(Ranking, RefusesNanNamingUserAndItem) {
  Factors<float> factors = random_factors<float>(4, 600, 3, 20);
  factors.u[3 * 2 + 1] = 0;
  factors.v[3 * 555 + 1] = INFINITY;  // times zero
  try {
    factors.scorer().rank(context(), all_users(4), no_items(4), {.k = 5});
    FAIL() << "NaN was ranked";
  } catch (const NanScore& error) {
    EXPECT_EQ(error.user, 2);
    EXPECT_EQ(error.item, 555);
    EXPECT_NE(std::string(error.what()).find("user row 2 and item row 555 is NaN"),
              std::string::npos);
  }
}

TEST_P(Ranking, OfABlockFunctionEqualsSortingItsScores) {
  const int64_t users = 20, items = 1100;
  std::vector<float> scores = normal<float>(users * items, 21);
  for (float& score : scores) score = std::round(score * 4) / 4;
  scores[30] = INFINITY;
  scores[1000] = -INFINITY;
  const auto score_of = [&](int32_t user, int32_t item) {
    return static_cast<double>(scores[static_cast<std::size_t>(user * items + item)]);
  };
  const BlockScorer scorer(
      users, items,
      [&](Context& at, std::span<const int32_t> rows, int64_t first, int64_t last,
          MatrixView<float> out) {
        for (std::size_t r = 0; r < rows.size(); ++r) {
          at.runtime().copy_from_host(out.data + static_cast<int64_t>(r) * out.cols(),
                                      scores.data() + rows[r] * items + first,
                                      static_cast<std::size_t>(last - first) * sizeof(float));
        }
        at.runtime().synchronize();
      },
      [](int32_t, std::span<const int32_t>, double*) {});
  const UserItems masked = random_items(users, items, 30, 22);

  const Lists lists =
      scorer.rank(context(), all_users(users), masked, {.k = 25, .item_block = 300});

  EXPECT_TRUE(same(lists, sorted_lists(lists.user, items, masked, 25, score_of)));
}

TEST_P(Ranking, OfABlockFunctionRefusesNanNamingUserAndItem) {
  std::vector<float> scores(3 * 900, 1.0f);
  scores[900 + 800] = scores[900 + 700] = static_cast<float>(kNan);
  const BlockScorer scorer(
      3, 900,
      [&](Context& at, std::span<const int32_t>, int64_t first, int64_t last,
          MatrixView<float> out) {
        for (int64_t r = 0; r < 3; ++r) {
          at.runtime().copy_from_host(out.data + r * out.cols(), scores.data() + r * 900 + first,
                                      static_cast<std::size_t>(last - first) * sizeof(float));
        }
        at.runtime().synchronize();
      },
      [](int32_t, std::span<const int32_t>, double*) {});
  try {
    scorer.rank(context(), all_users(3), no_items(3), {.k = 5});
    FAIL() << "NaN was ranked";
  } catch (const NanScore& error) {
    EXPECT_EQ(error.user, 1);
    EXPECT_EQ(error.item, 700);
  }
}

template <class T>
class MatrixRanking : public testing::Test {};
using ScoreTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(MatrixRanking, ScoreTypes);

TYPED_TEST(MatrixRanking, EqualsSortingAndOrdersInfinities) {
  const int64_t users = 30, items = 640;
  std::vector<TypeParam> scores = normal<TypeParam>(users * items, 23);
  for (TypeParam& score : scores) score = std::round(score * 8) / 8;
  for (std::size_t i = 0; i < scores.size(); i += 131) scores[i] = -kInfinity;
  for (std::size_t i = 0; i < scores.size(); i += 257) scores[i] = kInfinity;
  std::fill_n(scores.begin() + 3 * items, items, -kInfinity);
  const UserItems masked = random_items(users, items, 30, 24);
  const auto context = make_context("cpu", {.threads = 3});

  const Lists lists = MatrixScorer<TypeParam>({scores.data(), {users, items}})
                          .rank(*context, all_users(users), masked, {.k = 12});

  EXPECT_TRUE(same(lists, sorted_lists(lists.user, items, masked, 12, [&](int32_t u, int32_t i) {
                     return static_cast<double>(scores[static_cast<std::size_t>(u * items + i)]);
                   })));
}

TYPED_TEST(MatrixRanking, RefusesNanOfTheFirstUserWhoHasOne) {
  std::vector<TypeParam> scores(50 * 40, 0);
  for (const std::size_t user : {49, 31, 17}) {
    scores[user * 40 + 33] = scores[user * 40 + 38] = static_cast<TypeParam>(kNan);
  }
  const auto context = make_context("cpu", {.threads = 5});
  try {
    MatrixScorer<TypeParam>({scores.data(), {50, 40}})
        .rank(*context, all_users(50), no_items(50), {.k = 5});
    FAIL() << "NaN was ranked";
  } catch (const NanScore& error) {
    EXPECT_EQ(error.user, 17);
    EXPECT_EQ(error.item, 33);
  }
}

}  // namespace
}  // namespace cfaa::test
