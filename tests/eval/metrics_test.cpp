// Metrics of lists small enough to check by hand.

#include "host/eval/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/eval/rankings.h"

namespace cfaa::test {
namespace {

enum : std::size_t { kHr, kRecall, kNdcg, kMrr, kPrecision, kPooled, kCoverage };

// Two users over ten items. User 0 wants {3, 7, 9} and gets 5 3 0 7; user 2 wants {1}, gets 4 2
// 8 6.
struct Example {
  Lists lists{4, {0, 2}, {5, 3, 0, 7, 4, 2, 8, 6}, std::vector<double>(8)};
  UserItems positives = make_user_items(3, {{0, 3}, {0, 7}, {0, 9}, {2, 1}});
};

TEST(Metrics, OfAUserFollowTheirDefinitions) {
  const Example example;

  const UserMetrics metrics = measure_users(example.lists, example.positives, {2, 4});

  ASSERT_EQ(metrics.user, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(metrics.positives, (std::vector<int32_t>{3, 1}));
  EXPECT_EQ(metrics.hits, (std::vector<int32_t>{1, 2, 0, 0}));
  const double log3 = std::log2(3.0), log5 = std::log2(5.0);
  const std::vector<double> expected = {1,   1.0 / 3, (1 / log3) / (1 + 1 / log3),
                                        0.5, 0.5,  // user 0 at 2
                                        1,   2.0 / 3, (1 / log3 + 1 / log5) / (1 + 1 / log3 + 0.5),
                                        0.5, 0.5,  // user 0 at 4
                                        0,   0,       0,
                                        0,   0,  // user 2 at 2
                                        0,   0,       0,
                                        0,   0};
  EXPECT_TRUE(close_each(metrics.value, expected, 1e-15, 1));
}

TEST(Metrics, AreMeansOverUsersAndPoolOverPositives) {
  const Example example;
  const UserMetrics users = measure_users(example.lists, example.positives, {2, 4});

  const auto metrics = summarize(users, example.lists, 10);

  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[1].k, 4);
  EXPECT_TRUE(close(metrics[1].value[kHr], 0.5, 1e-15));
  EXPECT_TRUE(close(metrics[1].value[kRecall], 1.0 / 3, 1e-15));
  EXPECT_TRUE(close(metrics[1].value[kMrr], 0.25, 1e-15));
  EXPECT_TRUE(close(metrics[1].value[kPrecision], 0.25, 1e-15));
  EXPECT_TRUE(close(metrics[1].value[kPooled], 2.0 / 4, 1e-15));
  EXPECT_TRUE(close(metrics[0].value[kCoverage], 4.0 / 10, 1e-15));
  EXPECT_TRUE(close(metrics[1].value[kCoverage], 8.0 / 10, 1e-15));
}

TEST(Metrics, PooledHrCanExceedHrAndRecallCannot) {
  // User 0 finds both of two, user 1 none of one: HR 1/2, Recall 1/2, pooled 2/3.
  const Lists lists{2, {0, 1}, {4, 5, 0, 1}, std::vector<double>(4)};
  const UserItems positives = make_user_items(2, {{0, 4}, {0, 5}, {1, 9}});

  const auto metrics = summarize(measure_users(lists, positives, {2}), lists, 10);

  EXPECT_TRUE(close(metrics[0].value[kHr], 0.5, 1e-15));
  EXPECT_TRUE(close(metrics[0].value[kRecall], 0.5, 1e-15));
  EXPECT_TRUE(close(metrics[0].value[kPooled], 2.0 / 3, 1e-15));
}

TEST(Metrics, OfAPerfectListAreOne) {
  const Lists lists{3, {0}, {2, 0, 1}, std::vector<double>(3)};
  const UserItems positives = make_user_items(1, {{0, 0}, {0, 1}, {0, 2}, {0, 5}});

  const auto metrics = summarize(measure_users(lists, positives, {3}), lists, 6);

  EXPECT_TRUE(close(metrics[0].value[kNdcg], 1.0, 1e-15));
  EXPECT_TRUE(close(metrics[0].value[kPrecision], 1.0, 1e-15));
  EXPECT_TRUE(close(metrics[0].value[kMrr], 1.0, 1e-15));
  EXPECT_TRUE(close(metrics[0].value[kRecall], 0.75, 1e-15));
}

TEST(Metrics, OfAListThatRanOutOfItemsStillDivideByK) {
  const Lists lists{5, {0}, {3, 1, -1, -1, -1}, std::vector<double>(5)};
  const UserItems positives = make_user_items(1, {{0, 1}});

  const auto metrics = summarize(measure_users(lists, positives, {5}), lists, 4);

  EXPECT_TRUE(close(metrics[0].value[kPrecision], 0.2, 1e-15));
  EXPECT_TRUE(close(metrics[0].value[kMrr], 0.5, 1e-15));
  EXPECT_TRUE(close(metrics[0].value[kCoverage], 0.5, 1e-15));
}

TEST(Metrics, OfNobodyAreZero) {
  const Lists lists{5, {0}, {3, 1, 0, 2, 4}, std::vector<double>(5)};

  const auto metrics = summarize(measure_users(lists, no_items(1), {5}), lists, 5);

  for (const double value : metrics[0].value) EXPECT_EQ(value, 0);
}

UserMetrics random_metrics(int64_t users) {
  const auto factors = random_factors<float>(users, 50, 4, 1);
  const auto context = make_context("cpu", {.threads = 1});
  const Lists lists = factors.scorer().rank(*context, all_users(users), no_items(users), {.k = 10});
  return measure_users(lists, random_items(users, 50, 5, 2), {5, 10});
}

TEST(Bootstrap, HasTheSameBitsForEveryNumberOfThreads) {
  const UserMetrics metrics = random_metrics(80);
  const auto one = make_context("cpu", {.threads = 1}), five = make_context("cpu", {.threads = 5});

  const auto a = bootstrap(*one, metrics, 200, 3), b = bootstrap(*five, metrics, 200, 3);
  const auto other_seed = bootstrap(*one, metrics, 200, 4);

  ASSERT_EQ(a.size(), 2u);
  bool differs = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t m = 0; m < a[i].size(); ++m) {
      EXPECT_EQ(a[i][m].low, b[i][m].low);
      EXPECT_EQ(a[i][m].high, b[i][m].high);
      differs = differs || a[i][m].low != other_seed[i][m].low;
    }
  }
  EXPECT_TRUE(differs);
}

TEST(Bootstrap, IsAboutAsWideAsTheNormalInterval) {
  const UserMetrics metrics = random_metrics(400);
  const auto context = make_context("cpu", {.threads = 2});
  const auto n = static_cast<double>(metrics.user.size());
  double mean = 0, square = 0;
  for (std::size_t u = 0; u < metrics.user.size(); ++u) {
    const double recall = metrics.value[u * 2 * kUserMetrics + kRecall];
    mean += recall / n;
    square += recall * recall / n;
  }
  const double width = 2 * 1.96 * std::sqrt((square - mean * mean) / n);

  const Interval interval = bootstrap(*context, metrics, 2000, 5)[0][kRecall];

  EXPECT_LT(interval.low, mean);
  EXPECT_GT(interval.high, mean);
  EXPECT_TRUE(close(interval.high - interval.low, width, 0.1));
}

TEST(Bootstrap, OfEqualUsersHasNoWidth) {
  const Lists lists{1, {0, 1, 2}, {7, 7, 7}, std::vector<double>(3)};
  const UserItems positives = make_user_items(3, {{0, 7}, {1, 7}, {2, 7}});
  const auto context = make_context("cpu", {.threads = 1});

  const auto intervals = bootstrap(*context, measure_users(lists, positives, {1}), 50, 1);

  for (const Interval& interval : intervals[0]) {
    EXPECT_EQ(interval.low, 1);
    EXPECT_EQ(interval.high, 1);
  }
}

}  // namespace
}  // namespace cfaa::test
