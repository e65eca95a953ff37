#pragma once

// Bags of rows of a table (host/ops/embedding_bag.h) by plain loops in double, both directions of
// their lists, and their place on a device.

#include <cstdint>
#include <limits>
#include <vector>

#include "host/core/tensor.h"
#include "host/ops/embedding_bag.h"

namespace cfaa::reference {

struct BagLists {
  std::vector<int32_t> offset, index;
  std::vector<double> weight;

  int64_t bags() const { return static_cast<int64_t>(offset.size()) - 1; }
};

// Bags of 0 .. most entries of a table of `rows`, some of them repeated, weights in (-1, 1).
BagLists random_bags(int64_t bags, int64_t rows, int64_t most, uint64_t seed);

// The same entries by row: the rows that occur, ascending, each with its bags in order.
struct RowLists {
  std::vector<int32_t> row, offset, bag;
  std::vector<double> weight;
};
RowLists by_row(const BagLists& lists);

// (bags, columns), from a table (rows, columns).
std::vector<double> bag_sums(const BagLists& lists, const std::vector<double>& table,
                             int64_t columns);

// (rows, columns): the gradient of the whole table.
std::vector<double> table_gradient(const BagLists& lists, const std::vector<double>& dout,
                                   int64_t rows, int64_t columns);

// The lists on a device, with room for `spare` more rows and entries than are used: what is there
// is of no table.
template <class T>
class DeviceBags {
 public:
  DeviceBags(Context& context, const BagLists& lists, int64_t spare = 0) {
    const RowLists rows = by_row(lists);
    const std::vector<int32_t> count = {static_cast<int32_t>(rows.row.size())};
    const T nan = std::numeric_limits<T>::quiet_NaN();
    const auto on_device = [&]<class E>(const auto& values, E filler) {
      std::vector<E> all(values.begin(), values.end());
      all.insert(all.end(), static_cast<std::size_t>(spare), filler);
      return Tensor<E, 1>(context, {static_cast<int64_t>(all.size())}, all.data());
    };
    offset_ = on_device(lists.offset, kNowhere);
    index_ = on_device(lists.index, kNowhere);
    weight_ = on_device(lists.weight, nan);
    count_ = Tensor<int32_t, 1>(context, {1}, count.data());
    row_ = on_device(rows.row, kNowhere);
    row_offset_ = on_device(rows.offset, kNowhere);
    bag_ = on_device(rows.bag, kNowhere);
    row_weight_ = on_device(rows.weight, nan);
  }

  Bags<T> bags() const { return {offset_, index_, weight_}; }
  TouchedRows<T> touched() const { return {count_, row_, row_offset_, bag_, row_weight_}; }

 private:
  static constexpr int32_t kNowhere = 1 << 30;

  Tensor<int32_t, 1> offset_, index_, count_, row_, row_offset_, bag_;
  Tensor<T, 1> weight_, row_weight_;
};

}  // namespace cfaa::reference
