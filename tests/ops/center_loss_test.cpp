#include "host/ops/center_loss.h"

#include <gtest/gtest.h>

#include <limits>

#include "bench/reference/moments.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/differences.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class CenterLoss : public OnDevice {};
CFAA_TEST_ON_DEVICES(CenterLoss);

struct Rows {
  int64_t columns, negatives;
  std::vector<double> v, label, weight;

  int64_t rows() const { return static_cast<int64_t>(label.size()); }
};

// Queries whose own row is of label 1, and whose negatives are all of label 0 but some.
Rows random_rows(int64_t queries, int64_t negatives, int64_t columns, uint64_t seed) {
  Rows rows{columns, negatives, normal<double>(queries * (1 + negatives) * columns, seed), {}, {}};
  for (int64_t r = 0; r < queries * (1 + negatives); ++r) {
    rows.label.push_back(r < queries || r % 5 == 0 ? 1 : 0);
    rows.weight.push_back(r % 7 == 3 ? 0 : 0.25);
  }
  return rows;
}

template <class T>
struct Result {
  T loss;
  std::vector<T> gradient;
};

template <class T>
std::vector<T> as(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

template <class T>
Result<T> run(Context& context, const Rows& given, const CenterMargins& margins = {},
              double scale = 1, T before = 0) {
  const PaddedMatrix<T> v(context, given.rows(), given.columns, as<T>(given.v), 3);
  const PaddedMatrix<T> dv(context, given.rows(), given.columns,
                           std::vector<T>(given.v.size(), before), 5);
  const Tensor<T, 1> label(context, {given.rows()}, as<T>(given.label).data()),
      weight(context, {given.rows()}, as<T>(given.weight).data()), loss(context, {1});

  center_loss<T>(context, v.view(), given.negatives, label, weight, margins, scale, loss,
                 dv.view());

  return {loss.to_host()[0], dv.to_host()};
}

double reference_loss(const Rows& rows, const CenterMargins& margins) {
  return reference::center_loss(rows.v, rows.columns, rows.negatives, rows.label, rows.weight,
                                margins);
}

TEST_P(CenterLoss, GivesTheHandMadeResult) {
  // One query: a positive at (1 0); negatives at (1 0) and, of length 2, (0 1). Their centre is
  // (1/2 1/2), each 1/2 away from it, and 1/2 away from the positive's.
  const Rows rows{2, 2, {1, 0, 1, 0, 0, 2}, {1, 0, 0}, {1, 1, 1}};

  EXPECT_TRUE(close(run<double>(context(), rows).loss, 0.3 + 0.3 + 0.4, 1e-15));
}

TEST_P(CenterLoss, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t columns : {1, 31, 33, 257}) {
    for (const int64_t negatives : {0, 1, 4, 33}) {
      const Rows rows = random_rows(9, negatives, columns, 1);
      const double expected = reference_loss(rows, {});

      EXPECT_TRUE(close(run<double>(context(), rows).loss, expected, 1e-12))
          << columns << " " << negatives;
      EXPECT_TRUE(close(run<float>(context(), rows).loss, expected, 1e-5))
          << columns << " " << negatives;
    }
  }
}

TEST_P(CenterLoss, GradientEqualsCentralDifferences) {
  const Rows rows = random_rows(5, 4, 3, 2);
  for (const CenterMargins& margins : {CenterMargins{}, CenterMargins{0, 4}}) {
    const auto found = run<double>(context(), rows, margins, 0.7);
    const auto narrow = run<float>(context(), rows, margins, 0.7);

    const auto differences = central_differences(rows.v, [&](const std::vector<double>& v) {
      Rows moved = rows;
      moved.v = v;
      return 0.7 * reference_loss(moved, margins);
    });
    EXPECT_TRUE(close(found.gradient, differences, 1e-8));
    EXPECT_TRUE(close(narrow.gradient, differences, 1e-5));
  }
}

TEST_P(CenterLoss, GradientIsAddedToWhatIsThere) {
  const Rows rows = random_rows(5, 2, 3, 2);

  const auto from_zero = run<double>(context(), rows);
  const auto from_one = run<double>(context(), rows, {}, 1, 1.0);

  for (std::size_t i = 0; i < from_zero.gradient.size(); ++i) {
    EXPECT_NEAR(from_one.gradient[i], 1 + from_zero.gradient[i], 1e-15);
  }
}

TEST_P(CenterLoss, RowOfWeightZeroIsNotLookedAt) {
  Rows rows = random_rows(3, 2, 4, 3);
  rows.weight.assign(9, 1.0);
  rows.weight[5] = 0;
  const auto before = run<double>(context(), rows);

  for (std::size_t c = 20; c < 24; ++c) rows.v[c] = std::numeric_limits<double>::quiet_NaN();
  const auto after = run<double>(context(), rows);

  EXPECT_EQ(after.loss, before.loss);
  EXPECT_EQ(after.gradient, before.gradient);
}

TEST_P(CenterLoss, RowOfZerosGetsNoGradient) {
  Rows rows = random_rows(2, 2, 3, 4);
  rows.weight.assign(6, 1.0);
  for (std::size_t c = 9; c < 12; ++c) rows.v[c] = 0;

  const auto found = run<double>(context(), rows);

  for (std::size_t c = 9; c < 12; ++c) EXPECT_EQ(found.gradient[c], 0);
  EXPECT_TRUE(close(found.loss, reference_loss(rows, {}), 1e-12));
}

TEST_P(CenterLoss, HasTheSameBitsOnOneThreadAndOnTwo) {
  const Rows rows = random_rows(64, 4, 65, 5);
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});

  const auto alone = run<float>(*one, rows), together = run<float>(context(), rows);

  EXPECT_EQ(alone.loss, together.loss);
  EXPECT_EQ(alone.gradient, together.gradient);
}

}  // namespace
}  // namespace cfaa::test
