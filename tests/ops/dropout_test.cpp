#include "host/ops/dropout.h"

#include <gtest/gtest.h>

#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class Dropout : public OnDevice {};
CFAA_TEST_ON_DEVICES(Dropout);

template <class T>
std::vector<T> run(Context& context, double p, uint64_t step, uint64_t layer, int64_t rows,
                   const std::vector<T>& values, int64_t padding = 3) {
  StepState state;
  state.draw = step;
  const Tensor<StepState, 1> on_device(context, {1}, &state);
  const PaddedMatrix<T> x(context, rows, static_cast<int64_t>(values.size()) / rows, values,
                          padding);

  dropout<T>(context, p, on_device.view().data, layer, x.view());

  return x.to_host();
}

// The contract in one line, from Philox itself; the Context's seed is 1.
std::vector<float> expected(double p, uint64_t step, uint64_t layer,
                            const std::vector<float>& values) {
  std::vector<float> result;
  for (std::size_t e = 0; e < values.size(); ++e) {
    const uint32_t word = Philox{1}(e / 4, (step << 16) + layer).word[e % 4];
    const bool keep = static_cast<double>(word >> 8) / 16777216.0 >= p;
    result.push_back(keep ? values[e] * static_cast<float>(1 / (1 - p)) : 0.0f);
  }
  return result;
}

TEST_P(Dropout, KeepsWhatPhiloxSaysAtOddSizes) {
  for (const int64_t rows : {1, 31, 32, 33, 257}) {
    for (const int64_t columns : {1, 31, 32, 33, 257}) {
      const auto values = normal<float>(rows * columns, 8);

      const auto found = run<float>(context(), 0.3, 70000, 9, rows, values);

      EXPECT_EQ(found, expected(0.3, 70000, 9, values)) << rows << " " << columns;
    }
  }
}

TEST_P(Dropout, DoubleHasTheMaskOfFloat) {
  const auto values = normal<float>(33 * 31, 8);

  const auto narrow = run<float>(context(), 0.5, 3, 2, 33, values);
  const auto wide = run<double>(context(), 0.5, 3, 2, 33, {values.begin(), values.end()});

  EXPECT_TRUE(close_each(narrow, wide, 1e-7, 0));
}

TEST_P(Dropout, StepsLayersAndSeedsDrawDifferently) {
  const std::vector<float> ones(1000, 1.0f);
  const auto other = make_context(GetParam(), {.threads = 1, .seed = 2});

  const auto base = run<float>(context(), 0.5, 1, 0, 10, ones);

  EXPECT_NE(base, run<float>(context(), 0.5, 2, 0, 10, ones));
  EXPECT_NE(base, run<float>(context(), 0.5, 1, 1, 10, ones));
  EXPECT_NE(base, run<float>(*other, 0.5, 1, 0, 10, ones));
  EXPECT_EQ(base, run<float>(context(), 0.5, 1, 0, 25, ones, 0));
}

TEST_P(Dropout, KeepsTheMean) {
  const std::vector<double> ones(100000, 1.0);

  const auto found = run<double>(context(), 0.2, 5, 1, 100, ones);

  double sum = 0;
  for (const double value : found) sum += value;
  // Five standard deviations of the mean: sqrt(p / (1 - p) / n).
  EXPECT_NEAR(sum / 100000, 1, 5 * 0.0016);
}

TEST_P(Dropout, ProbabilityZeroDoesNothing) {
  const auto values = normal<float>(100, 8);

  EXPECT_EQ(run<float>(context(), 0, 5, 1, 10, values), values);
}

TEST_P(Dropout, HasTheSameBitsOnOneThreadAndOnTwo) {
  const auto values = normal<float>(257 * 300, 8);
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});

  EXPECT_EQ(run<float>(*one, 0.3, 4, 1, 257, values),
            run<float>(context(), 0.3, 4, 1, 257, values));
}

}  // namespace
}  // namespace cfaa::test
