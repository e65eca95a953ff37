#include "host/eval/proxy_distance.h"

#include <gtest/gtest.h>

#include "host/device/make_context.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

MatrixView<const float> rows_of(const std::vector<float>& values, int64_t dim) {
  return {values.data(), {static_cast<int64_t>(values.size()) / dim, dim}};
}

TEST(ProxyDistance, IsNearZeroForOneDistribution) {
  const auto context = make_context("cpu");
  const auto a = normal<float>(3000 * 10, 1), b = normal<float>(3000 * 10, 2);

  const ProxyDistance found = proxy_distance(*context, rows_of(a, 10), rows_of(b, 10));

  EXPECT_LT(found.distance, 0.12);
  EXPECT_GT(found.error, 0.47);
  EXPECT_EQ(found.train, 3000);
  EXPECT_EQ(found.held_out, 3000);
}

TEST(ProxyDistance, IsTwoForSetsFarApart) {
  const auto context = make_context("cpu");
  auto a = normal<float>(400 * 6, 1, 0), b = normal<float>(300 * 6, 2, 0);
  for (std::size_t i = 0; i < b.size(); i += 6) b[i] += 20;

  const ProxyDistance found = proxy_distance(*context, rows_of(a, 6), rows_of(b, 6));

  EXPECT_GT(found.distance, 1.99);
}

TEST(ProxyDistance, MeetsTheBestErrorOfShiftedNormals) {
  const auto context = make_context("cpu");
  // Means two deviations apart: the best classifier errs with Phi(-1) = 0.1587.
  const auto a = normal<float>(8000, 1, -1), b = normal<float>(8000, 2, 1);

  const ProxyDistance found = proxy_distance(*context, rows_of(a, 1), rows_of(b, 1));

  EXPECT_NEAR(found.error, 0.1587, 0.012);
  EXPECT_NEAR(found.distance, 2 * (1 - 2 * found.error), 1e-12);
}

TEST(ProxyDistance, DoesNotCountTheLargerSetMore) {
  const auto context = make_context("cpu");
  const auto a = normal<float>(6000 * 4, 1), b = normal<float>(200 * 4, 2);

  const ProxyDistance found = proxy_distance(*context, rows_of(a, 4), rows_of(b, 4));

  EXPECT_LT(found.distance, 0.4) << "always answering with the larger set would give 1.9";
}

TEST(ProxyDistance, IsZeroForConstantAttributes) {
  const auto context = make_context("cpu");
  const std::vector<float> same(40, 3.0f);

  const ProxyDistance found = proxy_distance(*context, rows_of(same, 2), rows_of(same, 2));

  EXPECT_LT(found.distance, 1e-12);
  EXPECT_GT(found.error, 0.5 - 1e-12);
}

TEST(ProxyDistance, HasTheSameBitsForEveryNumberOfThreads) {
  const auto one = make_context("cpu", {.threads = 1}), three = make_context("cpu", {.threads = 3});
  const auto a = normal<float>(900 * 5, 1), b = normal<float>(900 * 5, 2, 0.3);
  ProxyDistanceOptions options;
  options.most_rows = 700;

  const ProxyDistance first = proxy_distance(*one, rows_of(a, 5), rows_of(b, 5), options);
  const ProxyDistance second = proxy_distance(*three, rows_of(a, 5), rows_of(b, 5), options);

  EXPECT_EQ(first.error, second.error);
  EXPECT_EQ(first.train, 700);
}

}  // namespace
}  // namespace cfaa::test
