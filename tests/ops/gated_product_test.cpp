#include "host/ops/gated_product.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "bench/reference/pair_products.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/differences.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class GatedProduct : public OnDevice {};
CFAA_TEST_ON_DEVICES(GatedProduct);

using Values = std::vector<double>;

struct Given {
  Values x, y, weight, dscore;
  double bias = 0.25, p = 0;

  int64_t rows() const { return static_cast<int64_t>(dscore.size()); }
  int64_t columns() const { return static_cast<int64_t>(weight.size()); }
};

Given random_given(int64_t rows, int64_t columns, double p = 0) {
  return {normal<double>(rows * columns, 1),
          normal<double>(rows * columns, 2),
          normal<double>(columns, 3),
          normal<double>(rows, 4),
          0.25,
          p};
}

// What dropout of layer 5 in step 7 leaves of ones.
Values mask_of(Context& context, const Given& given) {
  const Values ones(given.x.size(), 1.0);
  StepState state;
  state.draw = 7;
  const Tensor<StepState, 1> on_device(context, {1}, &state);
  const Tensor<double, 2> x(context, {given.rows(), given.columns()}, ones.data());
  if (given.p > 0) dropout<double>(context, given.p, on_device.view().data, 5, x.view());
  return x.to_host();
}

template <class T>
struct Result {
  std::vector<T> score, dx, dy, dweight, dbias;
};

// Scores and the parameters' gradients start from 1.
template <class T>
Result<T> run(Context& context, const Given& given) {
  const auto as = [](const Values& values) { return std::vector<T>(values.begin(), values.end()); };
  const auto ones = [](const Values& like) { return std::vector<T>(like.size(), T(1)); };
  const std::vector<T> nan(given.x.size(), std::numeric_limits<T>::quiet_NaN());
  const int64_t rows = given.rows(), columns = given.columns();
  StepState state;
  state.draw = 7;
  const Tensor<StepState, 1> on_device(context, {1}, &state);
  const PaddedMatrix<T> x(context, rows, columns, as(given.x), 3),
      y(context, rows, columns, as(given.y), 1), dx(context, rows, columns, nan, 2),
      dy(context, rows, columns, nan, 5);
  const Tensor<T, 1> weight(context, {columns}, as(given.weight).data()),
      dweight(context, {columns}, ones(given.weight).data()),
      bias(context, {1}, as({given.bias}).data()), dbias(context, {1}, ones({0}).data()),
      score(context, {rows}, ones(given.dscore).data()),
      dscore(context, {rows}, as(given.dscore).data());
  const Dropout dropped{given.p, on_device.view().data, 5};

  gated_product<T>(context, x.view(), y.view(), weight, bias, dropped, score);
  gated_product_backward<T>(context, x.view(), y.view(), weight, dropped, dscore, dx.view(),
                            dy.view(), dweight, dbias);

  return {score.to_host(), dx.to_host(), dy.to_host(), dweight.to_host(), dbias.to_host()};
}

TEST_P(GatedProduct, GivesTheHandMadeResult) {
  // products 3, -8 (shut), 15; weights 1, 10, 100
  const Given given{{1, 2, -3}, {3, -4, -5}, {1, 10, 100}, {2}};

  const auto found = run<double>(context(), given);

  EXPECT_EQ(found.score, (Values{1 + 0.25 + 3 + 1500}));
  EXPECT_EQ(found.dx, (Values{6, 0, -1000}));
  EXPECT_EQ(found.dy, (Values{2, 0, -600}));
  EXPECT_EQ(found.dweight, (Values{7, 1, 31}));
  EXPECT_EQ(found.dbias, (Values{3}));
}

TEST_P(GatedProduct, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t rows : {1, 33, 257}) {
    for (const int64_t columns : {1, 31, 32, 33, 65}) {
      const Given given = random_given(rows, columns);
      Values expected =
          gated_product(given.x, given.y, given.weight, given.bias, mask_of(context(), given));
      for (double& score : expected) score += 1;

      EXPECT_TRUE(close(run<double>(context(), given).score, expected, 1e-13));
      EXPECT_TRUE(close(run<float>(context(), given).score, expected, 1e-6));
    }
  }
}

TEST_P(GatedProduct, BackwardEqualsCentralDifferencesWithAndWithoutDropout) {
  for (const double p : {0.0, 0.5}) {
    const Given given = random_given(6, 5, p);
    const Values mask = mask_of(context(), given);

    const auto found = run<double>(context(), given);
    const auto narrow = run<float>(context(), given);

    const auto differences = [&](Values Given::*values, double start) {
      Given moved = given;
      Values result = central_differences(given.*values, [&](const Values& x) {
        moved.*values = x;
        const Values score = gated_product(moved.x, moved.y, moved.weight, moved.bias, mask);
        return std::inner_product(score.begin(), score.end(), given.dscore.begin(), 0.0);
      });
      for (double& value : result) value += start;
      return result;
    };
    EXPECT_TRUE(close(found.dx, differences(&Given::x, 0), 1e-8)) << p;
    EXPECT_TRUE(close(found.dy, differences(&Given::y, 0), 1e-8)) << p;
    EXPECT_TRUE(close(found.dweight, differences(&Given::weight, 1), 1e-8)) << p;
    EXPECT_TRUE(close(narrow.dx, differences(&Given::x, 0), 1e-5)) << p;
    EXPECT_TRUE(close(narrow.dweight, differences(&Given::weight, 1), 1e-5)) << p;
    EXPECT_TRUE(close(found.dbias[0],
                      std::accumulate(given.dscore.begin(), given.dscore.end(), 1.0), 1e-13));
  }
}

TEST_P(GatedProduct, RowsHaveTheScoreAsTheirDotProduct) {
  const Given given = random_given(9, 33);
  const Tensor<double, 1> weight(context(), {33}, given.weight.data());
  const PaddedMatrix<double> x(context(), 9, 33, given.x, 3), y(context(), 9, 33, given.y, 1),
      users(context(), 9, 66, Values(9 * 66), 2), items(context(), 9, 66, Values(9 * 66), 4);

  gated_product_rows<double>(context(), x.view(), weight, users.view());
  gated_product_rows<double>(context(), y.view(), {}, items.view());

  const Values u = users.to_host(), v = items.to_host(),
               score = run<double>(context(), given).score;
  for (int64_t r = 0; r < 9; ++r) {
    const double dot =
        std::inner_product(u.begin() + r * 66, u.begin() + (r + 1) * 66, v.begin() + r * 66, 0.0);
    EXPECT_TRUE(close(dot + given.bias + 1, score[static_cast<std::size_t>(r)], 1e-13));
  }
}

TEST_P(GatedProduct, HasTheSameBitsOnOneThreadAndOnTwo) {
  const Given given = random_given(300, 33, 0.5);
  const auto one = make_context(GetParam(), {.threads = 1});
  const auto two = make_context(GetParam(), {.threads = 2});

  const auto alone = run<float>(*one, given), together = run<float>(*two, given);

  EXPECT_EQ(alone.score, together.score);
  EXPECT_EQ(alone.dx, together.dx);
  EXPECT_EQ(alone.dweight, together.dweight);
}

}  // namespace
}  // namespace cfaa::test
