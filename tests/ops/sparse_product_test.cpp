#include "host/ops/sparse_product.h"

#include <gtest/gtest.h>

#include "tests/compare.h"
#include "tests/on_device.h"

namespace cfaa::test {
namespace {

// A sparse matrix on the device, from a dense one: zeros are not stored.
struct OnDeviceSparse {
  Tensor<int64_t, 1> offset;
  Tensor<int32_t, 1> column;
  Tensor<float, 1> value;
  SparseView view;

  OnDeviceSparse(Context& context, int64_t rows, int64_t columns, const std::vector<float>& dense) {
    std::vector<int64_t> offsets = {0};
    std::vector<int32_t> at;
    std::vector<float> values;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        const float x = dense[static_cast<std::size_t>(r * columns + c)];
        if (x == 0) continue;
        at.push_back(static_cast<int32_t>(c));
        values.push_back(x);
      }
      offsets.push_back(static_cast<int64_t>(at.size()));
    }
    const auto entries = static_cast<int64_t>(at.size());
    offset = {context, {rows + 1}, offsets.data()};
    column = {context, {entries}, at.data()};
    value = {context, {entries}, values.data()};
    view = {rows, columns, offset.view().data, column.view().data, value.view().data};
  }
};

std::vector<float> mostly_zero(int64_t count, uint64_t seed) {
  std::vector<float> values = normal<float>(count, seed);
  for (float& x : values) x = x > 0.5f ? x : 0.0f;
  return values;
}

class SparseProduct : public OnDevice {};
CFAA_TEST_ON_DEVICES(SparseProduct);

TEST_P(SparseProduct, EqualsTheHandComputedProduct) {
  const OnDeviceSparse a(context(), 2, 3, {1, 0, 2, 0, 0, 3});
  const OnDeviceSparse b(context(), 3, 2, {4, 0, 7, 7, 0, 5});
  Tensor<double, 2> out(context(), {2, 2});

  sparse_product<double>(context(), a.view, {}, b.view, 2, 0, false, out.view());

  EXPECT_EQ(out.to_host(), (std::vector<double>{8, 20, 0, 30}));
}

TEST_P(SparseProduct, AddsTheChosenRowsAndColumnsToWhatIsThere) {
  const int64_t rows = 33, inner = 70, columns = 257;
  const auto dense_a = mostly_zero(rows * inner, 1), dense_b = mostly_zero(inner * columns, 2);
  const OnDeviceSparse a(context(), rows, inner, dense_a), b(context(), inner, columns, dense_b);
  const std::vector<int32_t> chosen = {32, 0, 7, 7};
  const Tensor<int32_t, 1> which(context(), {4}, chosen.data());
  const int64_t first = 31, width = 129;
  const auto start = normal<double>(4 * width, 3);
  PaddedMatrix<double> out(context(), 4, width, start, 5);

  sparse_product<double>(context(), a.view, which.view(), b.view, -0.5, first, true, out.view());

  std::vector<double> expected = start;
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      for (int64_t k = 0; k < inner; ++k) {
        expected[static_cast<std::size_t>(r * width + c)] -=
            0.5 *
            double{dense_a[static_cast<std::size_t>(chosen[static_cast<std::size_t>(r)] * inner +
                                                    k)]} *
            double{dense_b[static_cast<std::size_t>(k * columns + first + c)]};
      }
    }
  }
  EXPECT_TRUE(close(out.to_host(), expected, 1e-12));
}

TEST_P(SparseProduct, HasTheSameBitsInBlocks) {
  const int64_t rows = 40, inner = 50, columns = 100;
  const OnDeviceSparse a(context(), rows, inner, mostly_zero(rows * inner, 4));
  const OnDeviceSparse b(context(), inner, columns, mostly_zero(inner * columns, 5));
  Tensor<float, 2> whole(context(), {rows, columns}), in_blocks(context(), {rows, columns});

  sparse_product<float>(context(), a.view, {}, b.view, 1, 0, false, whole.view());
  for (const auto& [first, width] : {std::pair<int64_t, int64_t>{0, 33}, {33, 1}, {34, 66}}) {
    const MatrixView<float> part(in_blocks.view().data + first, {rows, width}, {columns, 1});
    sparse_product<float>(context(), a.view, {}, b.view, 1, first, false, part);
  }

  EXPECT_EQ(whole.to_host(), in_blocks.to_host());
}

}  // namespace
}  // namespace cfaa::test
