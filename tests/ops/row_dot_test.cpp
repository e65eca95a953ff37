#include "host/ops/row_dot.h"

#include <gtest/gtest.h>

#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class RowDot : public OnDevice {};
CFAA_TEST_ON_DEVICES(RowDot);

template <class T>
struct Rows {
  int64_t rows, columns;
  std::vector<T> u, v, score, dscore, du, dv;
};

template <class T>
Rows<T> random_rows(int64_t rows, int64_t columns) {
  const int64_t size = rows * columns;
  return {rows,
          columns,
          normal<T>(size, 1),
          normal<T>(size, 2),
          normal<T>(rows, 3),
          normal<T>(rows, 4),
          normal<T>(size, 5),
          normal<T>(size, 6)};
}

// Both directions, on what score, du and dv hold.
template <class T>
Rows<T> run(Context& context, Rows<T> given, double scale) {
  const PaddedMatrix<T> u(context, given.rows, given.columns, given.u, 3),
      v(context, given.rows, given.columns, given.v, 1),
      du(context, given.rows, given.columns, given.du, 2),
      dv(context, given.rows, given.columns, given.dv, 5);
  const Tensor<T, 1> score(context, {given.rows}, given.score.data()),
      dscore(context, {given.rows}, given.dscore.data());

  row_dot<T>(context, u.view(), v.view(), scale, score);
  row_dot_backward<T>(context, u.view(), v.view(), scale, dscore, du.view(), dv.view());

  given.score = score.to_host();
  given.du = du.to_host();
  given.dv = dv.to_host();
  return given;
}

template <class T>
Rows<double> reference(const Rows<T>& given, double scale) {
  Rows<double> result{given.rows, given.columns, {}, {}, {}, {}, {}, {}};
  result.score.assign(given.score.begin(), given.score.end());
  result.du.assign(given.du.begin(), given.du.end());
  result.dv.assign(given.dv.begin(), given.dv.end());
  for (int64_t r = 0; r < given.rows; ++r) {
    for (int64_t c = 0; c < given.columns; ++c) {
      const auto row = static_cast<std::size_t>(r);
      const auto at = static_cast<std::size_t>(r * given.columns + c);
      const double u = given.u[at], v = given.v[at], ds = given.dscore[row];
      result.score[row] += scale * u * v;
      result.du[at] += scale * ds * v;
      result.dv[at] += scale * ds * u;
    }
  }
  return result;
}

TEST_P(RowDot, GivesTheHandMadeResult) {
  const Rows<double> given{1, 2, {1, 2}, {3, 4}, {100}, {10}, {1, 1}, {2, 2}};

  const Rows<double> found = run(context(), given, 0.5);

  EXPECT_EQ(found.score, (std::vector<double>{105.5}));
  EXPECT_EQ(found.du, (std::vector<double>{16, 21}));
  EXPECT_EQ(found.dv, (std::vector<double>{7, 12}));
}

TEST_P(RowDot, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t rows : {1, 31, 32, 33, 257}) {
    for (const int64_t columns : {1, 31, 32, 33, 257}) {
      const auto given = random_rows<double>(rows, columns);
      const auto narrow = random_rows<float>(rows, columns);

      const auto found = run(context(), given, 0.7);
      const auto found_narrow = run(context(), narrow, 0.7);

      const auto expected = reference(given, 0.7);
      const auto expected_narrow = reference(narrow, 0.7);
      EXPECT_TRUE(close(found.score, expected.score, 1e-14)) << rows << " " << columns;
      EXPECT_TRUE(close(found.du, expected.du, 1e-14)) << rows << " " << columns;
      EXPECT_TRUE(close(found.dv, expected.dv, 1e-14)) << rows << " " << columns;
      EXPECT_TRUE(close(found_narrow.score, expected_narrow.score, 1e-6)) << rows << " " << columns;
      EXPECT_TRUE(close(found_narrow.du, expected_narrow.du, 1e-6)) << rows << " " << columns;
      EXPECT_TRUE(close(found_narrow.dv, expected_narrow.dv, 1e-6)) << rows << " " << columns;
    }
  }
}

TEST_P(RowDot, BackwardEqualsCentralDifferences) {
  auto given = random_rows<double>(3, 4);
  given.score.assign(3, 0);
  given.du.assign(12, 0);
  given.dv.assign(12, 0);
  const auto objective = [&](const Rows<double>& at) {
    const auto moved = run(context(), at, 0.7);
    double sum = 0;
    for (std::size_t r = 0; r < 3; ++r) sum += moved.score[r] * given.dscore[r];
    return sum;
  };

  const auto found = run(context(), given, 0.7);

  for (const auto& [member, gradient] :
       {std::pair{&Rows<double>::u, &found.du}, std::pair{&Rows<double>::v, &found.dv}}) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < 12; ++i) {
      auto up = given, down = given;
      (up.*member)[i] += 1e-5;
      (down.*member)[i] -= 1e-5;
      differences.push_back((objective(up) - objective(down)) / 2e-5);
    }
    EXPECT_TRUE(close(*gradient, differences, 1e-9));
  }
}

}  // namespace
}  // namespace cfaa::test
