#include "host/ops/embedding_bag.h"

#include <gtest/gtest.h>

#include <limits>

#include "bench/reference/bags.h"
#include "host/device/make_context.h"
#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

class EmbeddingBag : public OnDevice {};
CFAA_TEST_ON_DEVICES(EmbeddingBag);

template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

template <class T>
std::vector<T> forward(Context& context, const BagLists& lists, const std::vector<T>& table,
                       int64_t columns) {
  const int64_t rows = static_cast<int64_t>(table.size()) / columns;
  const PaddedMatrix<T> x(context, rows, columns, table, 3);
  const PaddedMatrix<T> out(
      context, lists.bags(), columns,
      std::vector<T>(static_cast<std::size_t>(lists.bags() * columns), kNan<T>), 5);
  const DeviceBags<T> bags(context, lists, 7);

  embedding_bag<T>(context, x.view(), bags.bags(), out.view());

  return out.to_host();
}

// The gradient of the whole table, and of rows beyond the touched ones nothing but what was there.
template <class T>
std::vector<T> backward(Context& context, const BagLists& lists, const std::vector<T>& dout,
                        int64_t rows, int64_t columns) {
  const RowLists touched = by_row(lists);
  const int64_t spare = 7, capacity = static_cast<int64_t>(touched.row.size()) + spare;
  const PaddedMatrix<T> from(context, lists.bags(), columns, dout, 3);
  const PaddedMatrix<T> gradient(
      context, capacity, columns,
      std::vector<T>(static_cast<std::size_t>(capacity * columns), T(-77)), 1);
  const DeviceBags<T> bags(context, lists, spare);

  embedding_bag_backward<T>(context, from.view(), bags.touched(), gradient.view());

  const std::vector<T> found = gradient.to_host();
  std::vector<T> whole(static_cast<std::size_t>(rows * columns), T(0));
  const auto width = static_cast<std::size_t>(columns);
  for (std::size_t i = 0; i < touched.row.size(); ++i) {
    std::copy_n(found.begin() + static_cast<int64_t>(i * width), columns,
                whole.begin() + touched.row[i] * columns);
  }
  for (std::size_t i = touched.row.size() * width; i < found.size(); ++i) {
    EXPECT_EQ(found[i], T(-77));
  }
  return whole;
}

TEST_P(EmbeddingBag, GivesTheHandMadeResult) {
  // rows (1 2), (10 20), (100 200); bags: 2 * row 0 + row 2; nothing; row 2 - row 2 / 2
  const BagLists lists{{0, 2, 2, 4}, {0, 2, 2, 2}, {2, 1, 1, -0.5}};

  const auto out = forward<double>(context(), lists, {1, 2, 10, 20, 100, 200}, 2);
  const auto gradient = backward<double>(context(), lists, {1, 3, 5, 7, 2, 4}, 3, 2);

  EXPECT_EQ(out, (std::vector<double>{102, 204, 0, 0, 50, 100}));
  EXPECT_EQ(gradient, (std::vector<double>{2, 6, 0, 0, 2, 5}));
}

TEST_P(EmbeddingBag, MatchesPlainLoopsAtOddSizes) {
  for (const int64_t bags : {1, 31, 33, 257}) {
    for (const int64_t columns : {1, 31, 32, 33, 64, 130, 257}) {
      const BagLists lists = random_bags(bags, 40, 9, static_cast<uint64_t>(bags + columns));
      const auto table = normal<double>(40 * columns, 5);
      const auto dout = normal<double>(bags * columns, 6);

      const auto out = forward<double>(context(), lists, table, columns);
      const auto gradient = backward<double>(context(), lists, dout, 40, columns);

      EXPECT_TRUE(close(out, bag_sums(lists, table, columns), 1e-14)) << bags << " " << columns;
      EXPECT_TRUE(close(gradient, table_gradient(lists, dout, 40, columns), 1e-14))
          << bags << " " << columns;
    }
  }
}

TEST_P(EmbeddingBag, MatchesPlainLoopsInFloat) {
  const BagLists lists = random_bags(64, 20, 30, 3);
  const auto table = normal<double>(20 * 300, 5), dout = normal<double>(64 * 300, 6);

  const auto out = forward<float>(context(), lists, {table.begin(), table.end()}, 300);
  const auto gradient = backward<float>(context(), lists, {dout.begin(), dout.end()}, 20, 300);

  EXPECT_TRUE(close(out, bag_sums(lists, table, 300), 1e-6));
  EXPECT_TRUE(close(gradient, table_gradient(lists, dout, 20, 300), 1e-6));
}

TEST_P(EmbeddingBag, BatchThatTouchesNoRowWritesNothing) {
  const BagLists lists{{0, 0, 0}, {}, {}};

  const auto out = forward<float>(context(), lists, {1, 2, 3}, 3);
  const auto gradient = backward<float>(context(), lists, {1, 2, 3, 4, 5, 6}, 1, 3);

  EXPECT_EQ(out, std::vector<float>(6, 0.0f));
  EXPECT_EQ(gradient, std::vector<float>(3, 0.0f));
}

TEST_P(EmbeddingBag, BackwardEqualsCentralDifferences) {
  const BagLists lists = random_bags(5, 6, 4, 11);
  const auto table = normal<double>(6 * 3, 5), dout = normal<double>(5 * 3, 6);
  const auto objective = [&](const std::vector<double>& values) {
    const auto out = forward<double>(context(), lists, values, 3);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
    return sum;
  };

  const auto gradient = backward<double>(context(), lists, dout, 6, 3);

  std::vector<double> differences;
  for (std::size_t i = 0; i < table.size(); ++i) {
    auto up = table, down = table;
    up[i] += 1e-5;
    down[i] -= 1e-5;
    differences.push_back((objective(up) - objective(down)) / 2e-5);
  }
  EXPECT_TRUE(close(gradient, differences, 1e-9));
}

TEST_P(EmbeddingBag, HasTheSameBitsOnOneThreadAndOnTwo) {
  const BagLists lists = random_bags(300, 50, 20, 12);
  const auto table = normal<float>(50 * 65, 5), dout = normal<float>(300 * 65, 6);
  const auto one = make_context(GetParam(), {.threads = 1, .seed = 1});

  EXPECT_EQ(forward<float>(*one, lists, table, 65), forward<float>(context(), lists, table, 65));
  EXPECT_EQ(backward<float>(*one, lists, dout, 50, 65),
            backward<float>(context(), lists, dout, 50, 65));
}

}  // namespace
}  // namespace cfaa::test
