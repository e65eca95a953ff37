#include "host/ops/bag_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "bench/reference/attention.h"
#include "bench/reference/texts.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/differences.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class BagAttention : public OnDevice {};
CFAA_TEST_ON_DEVICES(BagAttention);

using Values = std::vector<double>;

struct Given {
  BagLists lists;
  int64_t columns;
  Values x, logit, dout;

  int64_t rows() const { return static_cast<int64_t>(logit.size()); }
};

Given random_given(int64_t bags, int64_t rows, int64_t most, int64_t columns, uint64_t seed) {
  return {random_sets(bags, rows, most, seed), columns, normal<double>(rows * columns, seed + 1),
          normal<double>(rows, seed + 2, 0, 2), normal<double>(bags * columns, seed + 3)};
}

template <class T>
struct Result {
  std::vector<T> out, dx, dlogit;
};

// Gradients start from 1.
template <class T>
Result<T> run(Context& context, const Given& given) {
  const auto as = [](const Values& values) { return std::vector<T>(values.begin(), values.end()); };
  const auto ones = [](const Values& like) { return std::vector<T>(like.size(), T(1)); };
  const int64_t bags = given.lists.bags(), rows = given.rows(), columns = given.columns;
  const DeviceBags<T> lists(context, given.lists, 3);
  const PaddedMatrix<T> x(context, rows, columns, as(given.x), 3),
      out(context, bags, columns,
          std::vector<T>(given.dout.size(), std::numeric_limits<T>::quiet_NaN()), 1),
      dout(context, bags, columns, as(given.dout), 2), dx(context, rows, columns, ones(given.x), 5);
  const Tensor<T, 1> logit(context, {rows}, as(given.logit).data()),
      dlogit(context, {rows}, ones(given.logit).data());
  const Tensor<T, 2> softmax(context, {bags, 2});

  bag_attention<T>(context, x.view(), logit, lists.bags(), out.view(), softmax);
  bag_attention_backward<T>(context, x.view(), logit, out.view(), softmax, dout.view(),
                            lists.touched(), dx.view(), dlogit);

  return {out.to_host(), dx.to_host(), dlogit.to_host()};
}

TEST_P(BagAttention, GivesTheHandMadeResult) {
  // logits 0 and log 3 share 1 : 3; an empty bag; a bag of one row
  const Given given{
      {{0, 2, 2, 3}, {0, 1, 1}, {1, 1, 1}}, 1, {4, 8}, {0, std::log(3.0)}, {16, 7, 1}};

  const auto found = run<double>(context(), given);

  EXPECT_TRUE(close(found.out, Values{7, 0, 8}, 1e-14));
  EXPECT_TRUE(close(found.dx, Values{1 + 4, 1 + 12 + 1}, 1e-14));
  EXPECT_TRUE(close(found.dlogit, Values{1 - 16 * 0.25 * 3, 1 + 16 * 0.75 * 1}, 1e-13));
}

TEST_P(BagAttention, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t bags : {1, 33, 129}) {
    for (const int64_t columns : {1, 31, 33, 100}) {
      const Given given = random_given(bags, 50, 40, columns, 1);
      const Values expected = bag_attention(given.lists, given.x, columns, given.logit);

      EXPECT_TRUE(close(run<double>(context(), given).out, expected, 1e-13));
      EXPECT_TRUE(close(run<float>(context(), given).out, expected, 1e-6));
    }
  }
}

TEST_P(BagAttention, LargeLogitsDoNotOverflow) {
  const Given given{{{0, 2}, {0, 1}, {1, 1}}, 1, {4, 8}, {1e4, 1e4}, {1}};

  EXPECT_EQ(run<float>(context(), given).out, (std::vector<float>{6}));
}

TEST_P(BagAttention, BackwardEqualsCentralDifferences) {
  const Given given = random_given(7, 6, 5, 3, 2);

  const auto found = run<double>(context(), given);
  const auto narrow = run<float>(context(), given);

  const auto differences = [&](Values Given::*values) {
    Given moved = given;
    Values result = central_differences(given.*values, [&](const Values& at) {
      moved.*values = at;
      const Values out = bag_attention(moved.lists, moved.x, moved.columns, moved.logit);
      return std::inner_product(out.begin(), out.end(), given.dout.begin(), 0.0);
    });
    for (double& value : result) value += 1;
    return result;
  };
  EXPECT_TRUE(close(found.dx, differences(&Given::x), 1e-9));
  EXPECT_TRUE(close(found.dlogit, differences(&Given::logit), 1e-9));
  EXPECT_TRUE(close(narrow.dx, differences(&Given::x), 1e-6));
  EXPECT_TRUE(close(narrow.dlogit, differences(&Given::logit), 1e-5));
}

TEST_P(BagAttention, HasTheSameBitsOnOneThreadAndOnTwo) {
  const Given given = random_given(200, 60, 20, 33, 3);
  const auto one = make_context(GetParam(), {.threads = 1});
  const auto two = make_context(GetParam(), {.threads = 2});

  const auto alone = run<float>(*one, given), together = run<float>(*two, given);

  EXPECT_EQ(alone.out, together.out);
  EXPECT_EQ(alone.dx, together.dx);
  EXPECT_EQ(alone.dlogit, together.dlogit);
}

}  // namespace
}  // namespace cfaa::test
