#include "host/ops/als.h"

#include <gtest/gtest.h>

#include <cmath>

#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

// Row u has the columns c with (u * 7 + c * 3) % `every` < u % 5: rows of 0 to many entries.
struct Entries {
  int64_t rows, columns;
  std::vector<int64_t> offset = {0};
  std::vector<int32_t> column;

  Entries(int64_t m, int64_t n, int64_t every) : rows(m), columns(n) {
    for (int64_t u = 0; u < m; ++u) {
      for (int64_t c = 0; c < n; ++c) {
        if ((u * 7 + c * 3) % every < u % 5) column.push_back(static_cast<int32_t>(c));
      }
      offset.push_back(static_cast<int64_t>(column.size()));
    }
  }
};

struct DeviceEntries {
  Tensor<int64_t, 1> offset;
  Tensor<int32_t, 1> column;
  SparseView view;

  DeviceEntries(Context& context, const Entries& e)
      : offset(context, {e.rows + 1}, e.offset.data()),
        column(context, {static_cast<int64_t>(e.column.size())}, e.column.data()),
        view{e.rows, e.columns, offset.view().data, column.view().data, nullptr} {}
};

double at(const std::vector<double>& a, int64_t row, int64_t column, int64_t d) {
  return a[static_cast<std::size_t>(row * d + column)];
}

// The gradient of the objective with respect to w_u, over its scale.
double stationarity(const Entries& entries, const AlsOptions& o, int64_t d,
                    const std::vector<double>& h, const std::vector<double>& w) {
  double worst = 0;
  for (int64_t u = 0; u < entries.rows; ++u) {
    const auto begin = static_cast<std::size_t>(entries.offset[static_cast<std::size_t>(u)]);
    const auto end = static_cast<std::size_t>(entries.offset[static_cast<std::size_t>(u) + 1]);
    const double c = o.lambda * std::pow(static_cast<double>(end - begin) +
                                             o.alpha * static_cast<double>(entries.columns),
                                         o.nu);
    std::vector<double> gradient(static_cast<std::size_t>(d));
    const auto add = [&](int64_t item, double factor) {
      for (int64_t q = 0; q < d; ++q) {
        gradient[static_cast<std::size_t>(q)] += factor * at(h, item, q, d);
      }
    };
    const auto product = [&](int64_t item) {
      double sum = 0;
      for (int64_t q = 0; q < d; ++q) sum += at(h, item, q, d) * at(w, u, q, d);
      return sum;
    };
    for (int64_t i = 0; i < entries.columns; ++i) add(i, o.alpha * product(i));
    for (std::size_t e = begin; e < end; ++e) {
      add(entries.column[e], product(entries.column[e]) - 1);
    }
    for (int64_t q = 0; q < d; ++q) {
      const double g = gradient[static_cast<std::size_t>(q)] + c * at(w, u, q, d);
      if (!(std::abs(g) <= worst)) worst = std::abs(g);
    }
  }
  return worst;
}

class Als : public OnDevice {};
CFAA_TEST_ON_DEVICES(Als);

TEST_P(Als, SolvesAHandSolvedCase) {
  // h = 2, 1, 3; row 0 has items 0 and 1; d = 1: w = (2 + 1) / (4 + 1 + alpha 14 + c)
  Entries entries(1, 3, 1);
  entries.offset = {0, 2};
  entries.column = {0, 1};
  const DeviceEntries rows(context(), entries);
  const std::vector<double> items = {2, 1, 3};
  Tensor<double, 2> h(context(), {3, 1}, items.data()), w(context(), {1, 1});
  const AlsOptions options{0.5, 0.1, 1};

  als_half_sweep<double>(context(), rows.view, options, h.view(), w.view());

  const double c = 0.1 * (2 + 0.5 * 3);
  EXPECT_TRUE(close(w.to_host()[0] * h.to_host()[0], 2 * 3 / (5 + 0.5 * 14 + c), 1e-14));
}

TEST_P(Als, IsStationaryForRowsOfEveryLength) {
  const int64_t d = 9;
  const AlsOptions options{0.2, 0.05, 0.7};
  const Entries entries(33, 40, 6);  // 0 to 27 entries a row: fewer and more than d
  const DeviceEntries rows(context(), entries);
  const auto items = normal<double>(40 * d, 1);
  Tensor<double, 2> h(context(), {40, d}, items.data()), w(context(), {33, d});

  als_half_sweep<double>(context(), rows.view, options, h.view(), w.view());

  EXPECT_LE(stationarity(entries, options, d, h.to_host(), w.to_host()), 1e-11);
  const std::vector<double> solved = w.to_host();
  for (int64_t q = 0; q < d; ++q) EXPECT_EQ(at(solved, 0, q, d), 0) << "a row without entries";
}

TEST_P(Als, IsCloseToThatInFloat) {
  const int64_t d = 9;
  const AlsOptions options{0.2, 0.05, 0.7};
  const Entries entries(33, 40, 6);
  const DeviceEntries rows(context(), entries);
  const auto items = normal<float>(40 * d, 1);
  Tensor<float, 2> h(context(), {40, d}, items.data()), w(context(), {33, d});

  als_half_sweep<float>(context(), rows.view, options, h.view(), w.view());

  const auto turned = h.to_host(), solved = w.to_host();
  EXPECT_LE(stationarity(entries, options, d, {turned.begin(), turned.end()},
                         {solved.begin(), solved.end()}),
            1e-3);
}

TEST_P(Als, SolvesARowThatComesLaterToTheBitsItWouldHaveHad) {
  const int64_t d = 9;
  const AlsOptions options{0.2, 0.05, 0.7};
  const Entries entries(33, 40, 6);
  const DeviceEntries rows(context(), entries);
  const auto items = normal<float>(40 * d, 1);
  Tensor<float, 2> h(context(), {40, d}, items.data()), w(context(), {33, d});
  const auto diagonal = als_half_sweep<float>(context(), rows.view, options, h.view(), w.view());
  Entries last(1, 40, 6);  // row 32 alone
  last.column.assign(entries.column.begin() + entries.offset[32], entries.column.end());
  last.offset = {0, std::ssize(last.column)};
  const DeviceEntries later(context(), last);
  Tensor<float, 2> solved(context(), {1, d});

  als_later_rows<float>(context(), later.view, options, diagonal, h.view(), solved.view());

  const std::vector<float> all = w.to_host();
  EXPECT_EQ(solved.to_host(), std::vector<float>(all.end() - d, all.end()));
}

TEST(AlsOnTheCpu, HasTheSameBitsOnEveryNumberOfThreads) {
  const int64_t d = 16, items = 1500, users = 300;
  const Entries entries(users, items, 40);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    const auto context = make_context("cpu", {threads, 0});
    const DeviceEntries rows(*context, entries);
    const auto start = normal<float>(items * d, 1);
    Tensor<float, 2> h(*context, {items, d}, start.data()), w(*context, {users, d});
    als_half_sweep<float>(*context, rows.view, {}, h.view(), w.view());
    results.push_back(w.to_host());
  }

  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace cfaa::test
