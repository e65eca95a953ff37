#include "host/ops/bag_max.h"

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

class BagMax : public OnDevice {};
CFAA_TEST_ON_DEVICES(BagMax);

using Values = std::vector<double>;

template <class T>
struct Result {
  std::vector<T> out, gradient;  // which starts from 1
  std::vector<int32_t> from;
};

template <class T>
Result<T> run(Context& context, const BagLists& lists, const Values& x, const Values& dout,
              int64_t columns) {
  const auto as = [](const Values& values) { return std::vector<T>(values.begin(), values.end()); };
  const int64_t rows = static_cast<int64_t>(x.size()) / columns, spare = 4;
  const DeviceBags<T> bags(context, lists, spare);
  const PaddedMatrix<T> given(context, rows, columns, as(x), 3),
      out(context, lists.bags(), columns,
          std::vector<T>(dout.size(), std::numeric_limits<T>::quiet_NaN()), 1),
      from_above(context, lists.bags(), columns, as(dout), 2),
      dx(context, rows, columns, std::vector<T>(x.size(), T(1)), 5);
  const Tensor<int32_t, 2> from(context, {lists.bags(), columns});

  bag_max<T>(context, given.view(), bags.bags(), out.view(), from);
  bag_max_backward<T>(context, from_above.view(), from, bags.touched(), dx.view());

  return {out.to_host(), dx.to_host(), from.to_host()};
}

TEST_P(BagMax, GivesTheHandMadeResult) {
  // rows (1 -2), (3 -4), (3 5); bags: 0 and 1; nothing; 1 and 2 (a tie in the first column)
  const BagLists lists{{0, 2, 2, 4}, {0, 1, 1, 2}, {1, 1, 1, 1}};

  const auto found =
      run<double>(context(), lists, {1, -2, 3, -4, 3, 5}, {1, 10, 100, 1000, 2, 20}, 2);

  EXPECT_EQ(found.out, (Values{3, 0, 0, 0, 3, 5}));
  EXPECT_EQ(found.from, (std::vector<int32_t>{1, -1, -1, -1, 1, 2}));
  EXPECT_EQ(found.gradient, (Values{1, 1, 4, 1, 1, 21}));
}

TEST_P(BagMax, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t bags : {1, 31, 33, 257}) {
    for (const int64_t columns : {1, 31, 33, 100}) {
      const BagLists lists = random_sets(bags, 40, 9, static_cast<uint64_t>(bags + columns));
      const auto x = normal<double>(40 * columns, 5), dout = normal<double>(bags * columns, 6);
      const Values expected = bag_max(lists, x, columns);

      EXPECT_TRUE(close(run<double>(context(), lists, x, dout, columns).out, expected, 1e-15));
      EXPECT_TRUE(close(run<float>(context(), lists, x, dout, columns).out, expected, 1e-7));
    }
  }
}

TEST_P(BagMax, BackwardEqualsCentralDifferences) {
  const BagLists lists = random_sets(6, 5, 4, 11);
  const auto x = normal<double>(5 * 3, 5), dout = normal<double>(6 * 3, 6);

  const auto found = run<double>(context(), lists, x, dout, 3);
  const auto narrow = run<float>(context(), lists, x, dout, 3);

  Values differences = central_differences(x, [&](const Values& moved) {
    const Values out = bag_max(lists, moved, 3);
    return std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
  });
  for (double& value : differences) value += 1;
  EXPECT_TRUE(close(found.gradient, differences, 1e-9));
  EXPECT_TRUE(close(narrow.gradient, differences, 1e-6));
}

TEST_P(BagMax, HasTheSameBitsOnOneThreadAndOnTwo) {
  const BagLists lists = random_sets(300, 50, 20, 12);
  const auto x = normal<double>(50 * 65, 5), dout = normal<double>(300 * 65, 6);
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});

  const auto alone = run<float>(*one, lists, x, dout, 65);
  const auto together = run<float>(context(), lists, x, dout, 65);

  EXPECT_EQ(alone.out, together.out);
  EXPECT_EQ(alone.gradient, together.gradient);
}

}  // namespace
}  // namespace cfaa::test
