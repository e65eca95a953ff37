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
      : seen_(static_cast<std::size_t>(table_rows)), position_(seen_.size()) {}

  // Reads offset, index and weight of `lists`, in host memory, and fills the touched_ arrays.
  template <class T>
  void list(const EdgeLists<T>& lists);

 private:
  // Marks by row of the table, so that finding a batch's rows costs nothing per table row.
  std::vector<int64_t> seen_;      // the call that saw the row last
  std::vector<int32_t> position_;  // its entries, then where its next entry goes
  int64_t now_ = 0;
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
