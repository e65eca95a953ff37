#include "host/ops/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/device/make_context.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int32_t kNoItem = std::numeric_limits<int32_t>::max();

// What the lists are made of: embeddings, or scores as they are.
struct Problem {
  int64_t rows, items, k;
  std::vector<std::vector<int32_t>> masked;  // (rows), each ascending; or nothing
};

struct Found {
  std::vector<int32_t> item;      // (rows, k)
  std::vector<double> score;      // (rows, k)
  std::vector<int32_t> nan_item;  // (rows)
};

struct MaskedItems {
  std::vector<int64_t> offset{0};
  std::vector<int32_t> item;

  explicit MaskedItems(const Problem& problem) {
    for (int64_t row = 0; row < problem.rows; ++row) {
      if (!problem.masked.empty()) {
        const auto& of_row = problem.masked[static_cast<std::size_t>(row)];
        item.insert(item.end(), of_row.begin(), of_row.end());
      }
      offset.push_back(static_cast<int64_t>(item.size()));
    }
    if (item.empty()) item.push_back(0);  // belongs to no row
  }
};

template <class T, int Rank>
Tensor<T, Rank> on(Context& context, std::array<int64_t, Rank> shape,
                   const std::vector<T>& values) {
  return Tensor<T, Rank>(context, shape, values.data());
}

// Takes in blocks of `block` items; scores(first, last) are theirs, in device memory.
template <class T, class Scores>
Found lists_of(Context& context, const Problem& problem, const DotProducts<T>& dots,
               float largest_norm, int64_t block, Scores scores) {
  const Arena::Scope scope(context.scratch());
  const MaskedItems masked(problem);
  const auto offset = on<int64_t, 1>(context, {problem.rows + 1}, masked.offset);
  const auto item =
      on<int32_t, 1>(context, {static_cast<int64_t>(masked.item.size())}, masked.item);
  const RowItems masked_items{offset.view(), item.view()};

  const TopKCandidates candidates = top_k_candidates(context, problem.rows, problem.k);
  for (int64_t first = 0; first < problem.items; first += block) {
    const Tensor<float, 2> part = scores(first, std::min(problem.items, first + block));
    top_k_update<T>(context, part.view(), first, largest_norm, masked_items, dots, candidates);
    context.runtime().synchronize();
  }
  const auto items = context.scratch().take<int32_t, 2>({problem.rows, problem.k});
  const auto exact = context.scratch().take<double, 2>({problem.rows, problem.k});
  top_k_finish<T>(context, dots, candidates, items, exact);

  return {to_host(context, items), to_host(context, exact), to_host(context, candidates.nan_item)};
}

// Of scores (rows, items) that are exact as they are.
Found lists_of_scores(Context& context, const Problem& problem, const std::vector<float>& scores,
                      int64_t block) {
  return lists_of<float>(context, problem, DotProducts<float>{}, 0, block,
                         [&](int64_t first, int64_t last) {
                           std::vector<float> part;
                           for (int64_t row = 0; row < problem.rows; ++row) {
                             part.insert(part.end(), scores.begin() + row * problem.items + first,
                                         scores.begin() + row * problem.items + last);
                           }
                           return on<float, 2>(context, {problem.rows, last - first}, part);
                         });
}

// Rows scaled for the float products, with what bounds their error.
template <class T>
struct ScaledRows {
  ScaledRows(Context& context, const std::vector<T>& given, int64_t rows, int64_t d, bool common)
      : values(static_cast<std::size_t>(rows * d)),
        exponent(static_cast<std::size_t>(rows)),
        norm(static_cast<std::size_t>(rows)) {
    float_rows<T>(context, {given.data(), {rows, d}}, common, {values.data(), {rows, d}},
                  exponent.data(), norm.data());
  }

  std::vector<float> values;
  std::vector<int32_t> exponent;
  std::vector<double> norm;
};

// Of the dot products of u (rows, d) and v (items, d).
template <class T>
Found lists_of_products(Context& context, const Problem& problem, int64_t d,
                        const std::vector<T>& u, const std::vector<T>& v, int64_t block) {
  const ScaledRows<T> users(context, u, problem.rows, d, false);
  const ScaledRows<T> items(context, v, problem.items, d, true);
  std::vector<int32_t> exponent = users.exponent;
  for (int32_t& e : exponent) e += items.exponent[0];
  std::vector<double> bound = users.norm;
  for (double& b : bound) b *= dot_product_gamma(d);
  std::vector<float> norm;
  for (const double n : items.norm)
    norm.push_back(std::nextafter(static_cast<float>(n), HUGE_VALF));

  const auto given_u = on<T, 2>(context, {problem.rows, d}, u);
  const auto given_v = on<T, 2>(context, {problem.items, d}, v);
  const auto scaled_u = on<float, 2>(context, {problem.rows, d}, users.values);
  const auto scaled_v = on<float, 2>(context, {problem.items, d}, items.values);
  const auto exponents = on<int32_t, 1>(context, {problem.rows}, exponent);
  const auto bounds = on<double, 1>(context, {problem.rows}, bound);
  const auto norms = on<float, 1>(context, {problem.items}, norm);
  const DotProducts<T> dots{given_u.view(), given_v.view(), exponents.view(),
                            bounds.view(),  norms.view(),   dot_product_underflow(d)};
  const float largest = *std::max_element(norm.begin(), norm.end());
  return lists_of<T>(context, problem, dots, largest, block, [&](int64_t first, int64_t last) {
    Tensor<float, 2> scores(context, {problem.rows, last - first});
    dot_scores(context, scaled_u.view(), {scaled_v.view().data + first * d, {last - first, d}},
               scores.view());
    return scores;
  });
}

// Every unmasked item by (score descending, item ascending).
template <class Score>
Found sorted(const Problem& problem, Score score) {
  Found found;
  for (int64_t row = 0; row < problem.rows; ++row) {
    std::vector<std::pair<double, int32_t>> order;
    for (int32_t item = 0; item < problem.items; ++item) {
      const bool masked = !problem.masked.empty() &&
                          std::count(problem.masked[static_cast<std::size_t>(row)].begin(),
                                     problem.masked[static_cast<std::size_t>(row)].end(), item) > 0;
      if (!masked) order.emplace_back(-score(row, item), item);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < static_cast<std::size_t>(problem.k); ++i) {
      found.item.push_back(i < order.size() ? order[i].second : -1);
      found.score.push_back(i < order.size() ? -order[i].first : -kInfinity);
    }
  }
  found.nan_item.assign(static_cast<std::size_t>(problem.rows), kNoItem);
  return found;
}

void expect_same(const Found& found, const Found& expected) {
  EXPECT_EQ(found.item, expected.item);
  EXPECT_EQ(found.score, expected.score);
  EXPECT_EQ(found.nan_item, expected.nan_item);
}

// Normal scores rounded to quarters, so that many are equal.
std::vector<float> tied_scores(int64_t count, uint64_t seed) {
  std::vector<float> scores = normal<float>(count, seed);
  for (float& score : scores) score = std::round(score * 4) / 4;
  return scores;
}

template <class T>
double product(const std::vector<T>& u, const std::vector<T>& v, int64_t d, int64_t row,
               int64_t item) {
  double sum = 0;
  for (int64_t i = 0; i < d; ++i) {
    sum += static_cast<double>(u[static_cast<std::size_t>(row * d + i)]) *
           static_cast<double>(v[static_cast<std::size_t>(item * d + i)]);
  }
  return sum;
}

class TopK : public OnDevice {};
CFAA_TEST_ON_DEVICES(TopK);

TEST_P(TopK, OrdersAHandMadeCase) {
  const Problem problem{2, 4, 3, {{}, {3}}};

  const Found found = lists_of_scores(context(), problem, {3, 1, 3, -2, 0, 2, 0, 4}, 4);

  EXPECT_EQ(found.item, (std::vector<int32_t>{0, 2, 1, 1, 0, 2}));
  EXPECT_EQ(found.score, (std::vector<double>{3, 3, 1, 2, 0, 0}));
}

TEST_P(TopK, EqualsSortingWithManyTiesWhateverTheBlocks) {
  for (const int64_t k : {1, 31, 33, 100}) {
    const Problem problem{5, 700, k, {}};
    const auto scores = tied_scores(problem.rows * problem.items, 1);
    const Found expected = sorted(problem, [&](int64_t row, int64_t item) {
      return static_cast<double>(scores[static_cast<std::size_t>(row * problem.items + item)]);
    });
    for (const int64_t block : {37, 256, 700}) {
      expect_same(lists_of_scores(context(), problem, scores, block), expected);
    }
  }
}

TEST_P(TopK, LeavesOutWhatIsMaskedAndEndsShortListsInMinusOne) {
  const Problem problem{3, 5, 4, {{0, 1, 2, 3, 4}, {2, 4}, {}}};
  const auto scores = tied_scores(15, 2);
  const Found expected = sorted(problem, [&](int64_t row, int64_t item) {
    return static_cast<double>(scores[static_cast<std::size_t>(row * 5 + item)]);
  });

  const Found found = lists_of_scores(context(), problem, scores, 2);

  expect_same(found, expected);
  EXPECT_EQ(std::count(found.item.begin(), found.item.end(), -1), 4 + 1);
}

TEST_P(TopK, NamesTheLowestItemWhoseScoreIsNan) {
  const Problem problem{2, 300, 2, {}};
  std::vector<float> scores(600, 1.0f);
  scores[300 + 280] = scores[300 + 70] = std::numeric_limits<float>::quiet_NaN();

  const Found found = lists_of_scores(context(), problem, scores, 128);

  EXPECT_EQ(found.nan_item, (std::vector<int32_t>{kNoItem, 70}));
}

TEST_P(TopK, OfProductsEqualsSortingExactOnes) {
  const Problem problem{9, 500, 12, {}};
  const int64_t d = 7;
  const auto u = normal<float>(problem.rows * d, 3), v = normal<float>(problem.items * d, 4);
  const Found expected =
      sorted(problem, [&](int64_t row, int64_t item) { return product(u, v, d, row, item); });

  expect_same(lists_of_products<float>(context(), problem, d, u, v, 200), expected);
}

TEST_P(TopK, SeesDifferencesThatFloatDoesNot) {
  // Scores 1 + i 2^-40 are one number in float; in double they rise with the item.
  const Problem problem{1, 600, 3, {}};
  std::vector<double> v;
  for (int i = 0; i < 600; ++i) v.insert(v.end(), {1.0, static_cast<double>(i)});

  const Found found = lists_of_products<double>(context(), problem, 2, {1, 0x1p-40}, v, 256);

  EXPECT_EQ(found.item, (std::vector<int32_t>{599, 598, 597}));
}

template <class T>
class TopKOfRows : public testing::Test {};
using ScoreTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(TopKOfRows, ScoreTypes);

TYPED_TEST(TopKOfRows, EqualsSortingAndNamesNan) {
  const Problem problem{7, 640, 12, {}};
  auto scores = normal<TypeParam>(problem.rows * problem.items, 5);
  for (TypeParam& score : scores) score = std::round(score * 8) / 8;
  for (std::size_t i = 0; i < scores.size(); i += 131) scores[i] = -kInfinity;
  for (std::size_t i = 0; i < scores.size(); i += 257) scores[i] = kInfinity;
  Found expected = sorted(problem, [&](int64_t row, int64_t item) {
    return static_cast<double>(scores[static_cast<std::size_t>(row * problem.items + item)]);
  });
  const MaskedItems masked(problem);
  const auto context = make_context("cpu", {.threads = 3});
  Found found = expected;

  top_k_of_rows<TypeParam>(*context, {scores.data(), {problem.rows, problem.items}},
                           {{masked.offset.data(), {problem.rows + 1}}, {masked.item.data(), {0}}},
                           problem.k, {found.item.data(), {problem.rows, problem.k}},
                           {found.score.data(), {problem.rows, problem.k}},
                           {found.nan_item.data(), {problem.rows}});

  expect_same(found, expected);
}

TEST(ExactScores, AreThoseOfAPlainLoop) {
  for (const int64_t d : {1, 31, 33, 300}) {
    const auto u = normal<float>(d, 6), v = normal<float>(20 * d, 7);
    std::vector<int32_t> which;
    for (int32_t item = 19; item >= 0; item -= 1) which.push_back(item);
    std::vector<double> found(which.size()), expected;
    for (const int32_t item : which) expected.push_back(product(u, v, d, 0, item));

    exact_scores<float>(u.data(), {v.data(), {20, d}}, which.data(), 20, found.data());

    EXPECT_EQ(found, expected) << d;
  }
}

TEST(FloatRows, AreScaledByPowersOfTwoToAtMostOne) {
  const auto context = make_context("cpu", {.threads = 2});
  const std::vector<double> rows = {3e200, -1e200, 1e-300, 0.5e-300, 0, 0, 1, kInfinity};

  const ScaledRows<double> scaled(*context, rows, 4, 2, false);

  for (std::size_t i = 0; i < 4; ++i) {
    const double factor = std::ldexp(1.0, scaled.exponent[i / 2]);
    EXPECT_EQ(scaled.values[i], static_cast<float>(rows[i] * factor));
    EXPECT_LE(std::abs(scaled.values[i]), 1.0f);
  }
  EXPECT_EQ(scaled.norm[2], 0.0);
  EXPECT_EQ(scaled.norm[3], kInfinity);
  EXPECT_EQ(scaled.values[7], 0.0f);
}

TEST(DotProductBound, HoldsForFloatProducts) {
  const auto context = make_context("cpu", {.threads = 1});
  for (const int64_t d : {1, 7, 300}) {
    const auto u = normal<float>(40 * d, 8), v = normal<float>(50 * d, 9);
    const ScaledRows<float> users(*context, u, 40, d, false), items(*context, v, 50, d, true);
    std::vector<float> scores(40 * 50);

    dot_scores(*context, {users.values.data(), {40, d}}, {items.values.data(), {50, d}},
               {scores.data(), {40, 50}});

    for (std::size_t i = 0; i < 40; ++i) {
      for (std::size_t j = 0; j < 50; ++j) {
        const double exact =
            std::ldexp(product(u, v, d, static_cast<int64_t>(i), static_cast<int64_t>(j)),
                       users.exponent[i] + items.exponent[j]);
        const double bound =
            score_error(dot_product_gamma(d) * users.norm[i], static_cast<float>(items.norm[j]),
                        dot_product_underflow(d));
        EXPECT_LE(std::abs(scores[i * 50 + j] - exact), bound);
      }
    }
  }
}

}  // namespace
}  // namespace cfaa::test
