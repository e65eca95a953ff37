#include "host/ops/sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class Sum : public OnDevice {};
CFAA_TEST_ON_DEVICES(Sum);

template <class T>
T run(Context& context, const std::vector<T>& values, double scale) {
  const auto count = static_cast<int64_t>(values.size());
  const Tensor<T, 1> given(context, {count}, values.data());
  const T before = std::numeric_limits<T>::quiet_NaN();
  Tensor<T, 1> out(context, {1}, &before);

  sum<T>(context, given.view(), scale, out.view());

  return out.to_host()[0];
}

TEST_P(Sum, GivesTheHandMadeResult) {
  EXPECT_EQ(run<float>(context(), {1, 2, 3.5f}, 2), 13.0f);
  EXPECT_EQ(run<double>(context(), {1, 2, 3.5}, -0.5), -3.25);
}

TEST_P(Sum, OfNothingIsZero) {
  EXPECT_EQ(run<float>(context(), {}, 3), 0.0f);
}

TEST_P(Sum, MatchesAPlainLoopAtOddSizes) {
  for (const int64_t count : {1, 31, 32, 33, 255, 257, 1000}) {
    const auto values = normal<double>(count, 5);
    const double expected = 0.3 * std::accumulate(values.begin(), values.end(), 0.0);

    EXPECT_TRUE(close(run<double>(context(), values, 0.3), expected, 1e-12)) << count;
  }
}

TEST_P(Sum, AddsFloatsInDouble) {
  // In float the ones are lost beside 2^25, and it would come out as 0.
  std::vector<float> values(600, 1.0f);
  values.front() = 0x1p25f;
  values.back() = -0x1p25f;

  EXPECT_EQ(run<float>(context(), values, 1), 598.0f);
}

TEST_P(Sum, HasTheSameBitsForAnyNumberOfThreads) {
  const auto values = normal<float>(5000, 6);
  const float expected = run<float>(context(), values, 0.1);
  for (const int threads : {1, 3, 7}) {
    const auto other = make_context(GetParam(), {.threads = threads});

    EXPECT_EQ(run<float>(*other, values, 0.1), expected);
  }
}

TEST_P(Sum, PassesNanOn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();

  EXPECT_TRUE(std::isnan(run<float>(context(), {1, nan, 2}, 1)));
}

}  // namespace
}  // namespace cfaa::test
