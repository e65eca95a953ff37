#include "bench/reference/bags.h"

#include "host/core/philox.h"

namespace cfaa::reference {

BagLists random_bags(int64_t bags, int64_t rows, int64_t most, uint64_t seed) {
  const Philox random{seed};
  BagLists lists;
  lists.offset.push_back(0);
  for (int64_t b = 0; b < bags; ++b) {
    const auto size = random.below(static_cast<uint64_t>(most) + 1, static_cast<uint64_t>(b), 0);
    for (uint64_t e = 0; e < size; ++e) {
      const uint64_t at = lists.index.size();
      lists.index.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(rows), at, 1)));
      lists.weight.push_back(2.0 * static_cast<double>(random.uniform(at, 2)) - 1);
    }
    lists.offset.push_back(static_cast<int32_t>(lists.index.size()));
  }
  return lists;
}

RowLists by_row(const BagLists& lists) {
  int32_t rows = 0;
  for (const int32_t row : lists.index) rows = std::max(rows, row + 1);
  std::vector<std::vector<std::size_t>> entries(static_cast<std::size_t>(rows));
  std::vector<int32_t> bag_of(lists.index.size());
  for (std::size_t b = 0; b + 1 < lists.offset.size(); ++b) {
    for (auto e = static_cast<std::size_t>(lists.offset[b]);
         e < static_cast<std::size_t>(lists.offset[b + 1]); ++e) {
      bag_of[e] = static_cast<int32_t>(b);
      entries[static_cast<std::size_t>(lists.index[e])].push_back(e);
    }
  }
  RowLists result;
  result.offset.push_back(0);
  for (std::size_t row = 0; row < entries.size(); ++row) {
    if (entries[row].empty()) continue;
    result.row.push_back(static_cast<int32_t>(row));
    for (const std::size_t e : entries[row]) {
      result.bag.push_back(bag_of[e]);
      result.weight.push_back(lists.weight[e]);
    }
    result.offset.push_back(static_cast<int32_t>(result.bag.size()));
  }
  return result;
}

std::vector<double> bag_sums(const BagLists& lists, const std::vector<double>& table,
                             int64_t columns) {
  const auto width = static_cast<std::size_t>(columns);
  std::vector<double> sums(static_cast<std::size_t>(lists.bags()) * width);
  for (std::size_t b = 0; b + 1 < lists.offset.size(); ++b) {
    for (auto e = static_cast<std::size_t>(lists.offset[b]);
         e < static_cast<std::size_t>(lists.offset[b + 1]); ++e) {
      for (std::size_t c = 0; c < width; ++c) {
        sums[b * width + c] +=
            lists.weight[e] * table[static_cast<std::size_t>(lists.index[e]) * width + c];
      }
    }
  }
  return sums;
}

std::vector<double> table_gradient(const BagLists& lists, const std::vector<double>& dout,
                                   int64_t rows, int64_t columns) {
  const auto width = static_cast<std::size_t>(columns);
  std::vector<double> gradient(static_cast<std::size_t>(rows) * width);
  for (std::size_t b = 0; b + 1 < lists.offset.size(); ++b) {
    for (auto e = static_cast<std::size_t>(lists.offset[b]);
         e < static_cast<std::size_t>(lists.offset[b + 1]); ++e) {
      for (std::size_t c = 0; c < width; ++c) {
        gradient[static_cast<std::size_t>(lists.index[e]) * width + c] +=
            lists.weight[e] * dout[b * width + c];
      }
    }
  }
  return gradient;
}

}  // namespace cfaa::reference
