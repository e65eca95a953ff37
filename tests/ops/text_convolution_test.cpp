#include "host/ops/text_convolution.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "bench/reference/texts.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/differences.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class TextConvolution : public OnDevice {};
CFAA_TEST_ON_DEVICES(TextConvolution);

using Values = std::vector<double>;

struct Given {
  Texts texts;
  int64_t words, width, filters;
  Values product, bias, dout;
};

Given random_given(int64_t texts, int64_t words, int64_t longest, int64_t width, int64_t filters) {
  return {random_texts(texts, words, longest, 1),
          words,
          width,
          filters,
          normal<double>(words * width * filters, 2),
          normal<double>(filters, 3, 0.1, 0.1),
          normal<double>(texts * filters, 4)};
}

template <class T>
struct Result {
  std::vector<T> out, dproduct, dbias;
  std::vector<int32_t> position;
};

// Gradients of the bias start from 1.
template <class T>
Result<T> run(Context& context, const Given& given) {
  const auto as = [](const Values& values) { return std::vector<T>(values.begin(), values.end()); };
  const int64_t texts = given.texts.count(), columns = given.width * given.filters;
  const auto size = static_cast<std::size_t>(given.words * columns);
  const std::vector<T> nan(std::max(size, given.dout.size()), std::numeric_limits<T>::quiet_NaN());
  const DeviceTexts lists(context, given.texts, given.words);
  const PaddedMatrix<T> product(context, given.words, columns, as(given.product), 3),
      out(context, texts, given.filters, {nan.begin(), nan.begin() + texts * given.filters}, 1),
      dout(context, texts, given.filters, as(given.dout), 2),
      dproduct(context, given.words, columns, {nan.begin(), nan.begin() + given.words * columns},
               5);
  const std::vector<T> ones(given.bias.size(), T(1));
  const Tensor<T, 1> bias(context, {given.filters}, as(given.bias).data()),
      dbias(context, {given.filters}, ones.data());
  const Tensor<int32_t, 2> position(context, {texts, given.filters});

  text_convolution<T>(context, product.view(), bias, given.width, lists.texts(), out.view(),
                      position);
  text_convolution_backward<T>(context, dout.view(), position, given.width, lists.words(),
                               dproduct.view(), dbias);

  return {out.to_host(), dproduct.to_host(), dbias.to_host(), position.to_host()};
}

double objective(const Given& given) {
  const Values out = text_convolution(given.texts, given.product, given.bias, given.width);
  return std::inner_product(out.begin(), out.end(), given.dout.begin(), 0.0);
}

TEST_P(TextConvolution, GivesTheHandMadeResult) {
  // Words 0 and 1, windows of two, one filter: places (1, 10) and (2, 20), bias 1/2. Texts: 0 1 0,
  // 1 alone (padded), nothing, and 0 of a word whose products are below 0.
  const Given given{{{0, 3, 4, 4, 5}, {0, 1, 0, 1, 2}},
                    3,
                    2,
                    1,
                    {1, 10, 2, 20, -3, -30},
                    {0.5},
                    {1, 10, 100, 1000}};

  const auto found = run<double>(context(), given);

  EXPECT_EQ(found.out, (Values{21.5, 2.5, 0, 0}));
  EXPECT_EQ(found.position, (std::vector<int32_t>{0, 0, -1, -1}));
  EXPECT_EQ(found.dproduct, (Values{1, 0, 10, 1, 0, 0}));
  EXPECT_EQ(found.dbias, (Values{12}));
}

TEST_P(TextConvolution, TheFirstPositionWinsATie) {
  const Given given{{{0, 4}, {0, 0, 0, 0}}, 1, 2, 1, {1, 1}, {0}, {5}};

  const auto found = run<double>(context(), given);

  EXPECT_EQ(found.position, (std::vector<int32_t>{0}));
  EXPECT_EQ(found.dproduct, (Values{5, 5}));
}

TEST_P(TextConvolution, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t filters : {1, 31, 33, 65, 100}) {
    for (const int64_t width : {1, 3, 5}) {
      const Given given = random_given(33, 20, 12, width, filters);
      const Values expected = text_convolution(given.texts, given.product, given.bias, given.width);

      EXPECT_TRUE(close(run<double>(context(), given).out, expected, 1e-14))
          << filters << " " << width;
      EXPECT_TRUE(close(run<float>(context(), given).out, expected, 1e-6))
          << filters << " " << width;
    }
  }
}

TEST_P(TextConvolution, BackwardEqualsCentralDifferences) {
  const Given given = random_given(7, 5, 9, 3, 3);

  const auto found = run<double>(context(), given);
  const auto narrow = run<float>(context(), given);

  const Values by_product = central_differences(given.product, [&](const Values& product) {
    Given moved = given;
    moved.product = product;
    return objective(moved);
  });
  Values by_bias = central_differences(given.bias, [&](const Values& bias) {
    Given moved = given;
    moved.bias = bias;
    return objective(moved);
  });
  for (double& value : by_bias) value += 1;
  EXPECT_TRUE(close(found.dproduct, by_product, 1e-9));
  EXPECT_TRUE(close(found.dbias, by_bias, 1e-9));
  EXPECT_TRUE(close(narrow.dproduct, by_product, 1e-6));
  EXPECT_TRUE(close(narrow.dbias, by_bias, 1e-6));
}

TEST_P(TextConvolution, HasTheSameBitsOnOneThreadAndOnTwo) {
  const Given given = random_given(100, 30, 20, 3, 100);
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});

  const auto alone = run<float>(*one, given), together = run<float>(context(), given);

  EXPECT_EQ(alone.out, together.out);
  EXPECT_EQ(alone.dproduct, together.dproduct);
  EXPECT_EQ(alone.dbias, together.dbias);
}

}  // namespace
}  // namespace cfaa::test
