#pragma once

// Which rows of a table the bags of a batch touch, and by which bags: the second half of EdgeLists,
// made from the first. Rows ascend, and so do the bags of a row: the order in which their gradients
// are added.

#include <cstdint>
#include <vector>

#include "host/model/batch.h"

namespace cfaa {

class TouchedRowLister {
 public:
  explicit TouchedRowLister(int64_t table_rows = 0)
      : touched_(static_cast<std::size_t>(table_rows + 63) / 64),
        position_(static_cast<std::size_t>(table_rows)) {}

  // Reads offset, index and weight of `lists`, in host memory, and fills the touched_ arrays.
  template <class T>
  void list(const EdgeLists<T>& lists);

 private:
  // A bit a row of the table: read from the first to the last it has the batch's rows in order,
  // for less than sorting them costs.
  std::vector<uint64_t> touched_;  // 0 between two calls
  std::vector<int32_t> position_;  // a row's entries, then where its next entry goes
};

// Bag r holds the one row `row_of(r)`, with weight 1.
template <class T, class RowOf>
void fill_single_rows(const EdgeLists<T>& lists, RowOf row_of) {
  const auto bags = static_cast<int32_t>(lists.offset.size() - 1);
  for (int32_t bag = 0; bag < bags; ++bag) {
    lists.offset.data[bag] = bag;
    lists.index.data[bag] = row_of(bag);
    lists.weight.data[bag] = T(1);
  }
  lists.offset.data[bags] = bags;
}

}  // namespace cfaa
