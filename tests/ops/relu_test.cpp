#include "host/ops/relu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class Relu : public OnDevice {};
CFAA_TEST_ON_DEVICES(Relu);

TEST_P(Relu, GivesTheHandMadeResultAndItsGradient) {
  const PaddedMatrix<double> x(context(), 2, 2, {1, -2, 0, 4}, 3),
      dx(context(), 2, 2, {10, 20, 30, 40}, 1);

  relu<double>(context(), x.view());
  relu_backward<double>(context(), x.view(), dx.view());

  EXPECT_EQ(x.to_host(), (std::vector<double>{1, 0, 0, 4}));
  EXPECT_EQ(dx.to_host(), (std::vector<double>{10, 0, 0, 40}));
}

TEST_P(Relu, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t rows : {1, 33, 257}) {
    for (const int64_t columns : {1, 31, 33}) {
      const auto given = normal<float>(rows * columns, 1), above = normal<float>(rows * columns, 2);
      const PaddedMatrix<float> x(context(), rows, columns, given, 3),
          dx(context(), rows, columns, above, 1);

      relu<float>(context(), x.view());
      relu_backward<float>(context(), x.view(), dx.view());

      const auto y = x.to_host(), gradient = dx.to_host();
      for (std::size_t i = 0; i < given.size(); ++i) {
        EXPECT_EQ(y[i], std::max(given[i], 0.0f));
        EXPECT_EQ(gradient[i], given[i] > 0 ? above[i] : 0.0f);
      }
    }
  }
}

TEST_P(Relu, NanStaysNan) {
  const PaddedMatrix<float> x(context(), 1, 1, {std::numeric_limits<float>::quiet_NaN()});

  relu<float>(context(), x.view());

  EXPECT_TRUE(std::isnan(x.to_host()[0]));
}

}  // namespace
}  // namespace cfaa::test
