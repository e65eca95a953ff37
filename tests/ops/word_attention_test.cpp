#include "host/ops/word_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
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

class WordAttention : public OnDevice {};
CFAA_TEST_ON_DEVICES(WordAttention);

using Values = std::vector<double>;

struct Given {
  BagLists lists;
  int64_t words, width, columns;
  double scale;
  Values query, key, value, dout;

  int64_t rows() const { return lists.bags(); }
};

Given random_given(int64_t rows, int64_t words, int64_t most, int64_t width, int64_t columns,
                   double scale) {
  BagLists lists = random_sets(rows, words, most, 1);
  for (std::size_t r = 0; r + 1 < lists.offset.size(); ++r) {
    std::sort(lists.index.begin() + lists.offset[r], lists.index.begin() + lists.offset[r + 1]);
  }
  return {lists,
          words,
          width,
          columns,
          scale,
          normal<double>(rows * width, 2),
          normal<double>(words * width, 3),
          normal<double>(words * columns, 4),
          normal<double>(rows * columns, 5)};
}

template <class T>
struct Result {
  std::vector<T> out, share, dquery, dkey;  // dkey of every word
};

template <class T>
Result<T> run(Context& context, const Given& given) {
  const auto as = [](const Values& values) { return std::vector<T>(values.begin(), values.end()); };
  const auto nan = [](int64_t size) {
    return std::vector<T>(static_cast<std::size_t>(size), std::numeric_limits<T>::quiet_NaN());
  };
  const RowLists touched = by_row(given.lists);
  const int64_t rows = given.rows(), width = given.width, spare = 3;
  const int64_t capacity = static_cast<int64_t>(touched.row.size()) + spare;
  const int64_t entries = static_cast<int64_t>(given.lists.index.size()) + spare;
  const DeviceBags<T> lists(context, given.lists, spare);
  const PaddedMatrix<T> query(context, rows, width, as(given.query), 3),
      key(context, given.words, width, as(given.key), 1),
      value(context, given.words, given.columns, as(given.value), 2),
      out(context, rows, given.columns, nan(rows * given.columns), 1),
      dout(context, rows, given.columns, as(given.dout), 2),
      dquery(context, rows, width, nan(rows * width), 5),
      gradient(context, capacity, width,
               std::vector<T>(static_cast<std::size_t>(capacity * width), T(-77)), 4);
  const Tensor<T, 1> share(context, {entries});

  word_attention<T>(context, query.view(), key.view(), value.view(), given.scale, lists.bags(),
                    out.view(), share);
  word_attention_backward<T>(context, query.view(), key.view(), value.view(), given.scale,
                             lists.bags(), share, dout.view(), lists.touched(), dquery.view(),
                             gradient.view());

  Result<T> result{out.to_host(), share.to_host(), dquery.to_host(),
                   std::vector<T>(given.key.size(), T(0))};
  const std::vector<T> found = gradient.to_host();
  for (std::size_t i = 0; i < touched.row.size(); ++i) {
    std::copy_n(found.begin() + static_cast<int64_t>(i) * width, width,
                result.dkey.begin() + touched.row[i] * width);
  }
  for (auto i = found.end() - spare * width; i != found.end(); ++i) EXPECT_EQ(*i, T(-77));
  return result;
}

TEST_P(WordAttention, GivesTheHandMadeResult) {
  // A query of 1 and keys 0 and log 3 share 1 : 3; a row without words.
  const Given given{{{0, 2, 2}, {0, 1}, {1, 1}}, 2,      1,      1, 1, {1, 5},
                    {0, std::log(3.0)},          {4, 8}, {16, 1}};

  const auto found = run<double>(context(), given);

  EXPECT_TRUE(close(found.out, Values{7, 0}, 1e-14));
  EXPECT_TRUE(close(found.dkey, Values{-12, 12}, 1e-13));
  EXPECT_TRUE(close(found.dquery, Values{12 * std::log(3.0), 0}, 1e-13));
}

TEST_P(WordAttention, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t rows : {1, 9}) {
    for (const int64_t width : {1, 31, 33, 128}) {
      for (const int64_t columns : {1, 33, 130}) {
        const Given given = random_given(rows, 60, 40, width, columns, 0.3);
        const Values expected = word_attention(given.lists, given.query, given.key, width,
                                               given.value, columns, given.scale);

        EXPECT_TRUE(close(run<double>(context(), given).out, expected, 1e-12));
        EXPECT_TRUE(close(run<float>(context(), given).out, expected, 2e-5));
      }
    }
  }
}

TEST_P(WordAttention, LargeProductsDoNotOverflow) {
  const Given given{{{0, 2}, {0, 1}, {1, 1}}, 2, 1, 1, 100, {100}, {1, 1}, {4, 8}, {1}};

  EXPECT_EQ(run<float>(context(), given).out, (std::vector<float>{6}));
}

TEST_P(WordAttention, BackwardEqualsCentralDifferences) {
  const Given given = random_given(6, 8, 7, 3, 2, 0.7);

  const auto found = run<double>(context(), given);
  const auto narrow = run<float>(context(), given);

  const auto differences = [&](Values Given::*values) {
    Given moved = given;
    return central_differences(given.*values, [&](const Values& at) {
      moved.*values = at;
      const Values out = word_attention(moved.lists, moved.query, moved.key, moved.width,
                                        moved.value, moved.columns, moved.scale);
      return std::inner_product(out.begin(), out.end(), given.dout.begin(), 0.0);
    });
  };
  EXPECT_TRUE(close(found.dquery, differences(&Given::query), 1e-9));
  EXPECT_TRUE(close(found.dkey, differences(&Given::key), 1e-9));
  EXPECT_TRUE(close(narrow.dquery, differences(&Given::query), 1e-5));
  EXPECT_TRUE(close(narrow.dkey, differences(&Given::key), 1e-5));
}

TEST_P(WordAttention, HasTheSameBitsOnOneThreadAndOnTwo) {
  const Given given = random_given(60, 100, 40, 33, 65, 0.3);
  const auto one = make_context(GetParam(), {.threads = 1});
  const auto two = make_context(GetParam(), {.threads = 2});

  const auto alone = run<float>(*one, given), together = run<float>(*two, given);

  EXPECT_EQ(alone.out, together.out);
  EXPECT_EQ(alone.dquery, together.dquery);
  EXPECT_EQ(alone.dkey, together.dkey);
}

}  // namespace
}  // namespace cfaa::test
