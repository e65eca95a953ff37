#include "host/train/touched_rows.h"

#include <algorithm>
#include <utility>

namespace cfaa {

template <class T>
void TouchedRowLister::list(const EdgeLists<T>& lists) {
  const int64_t bags = lists.offset.size() - 1;
  const int32_t entries = lists.offset.data[bags];
  ++now_;
  int32_t touched = 0;
  for (int32_t e = 0; e < entries; ++e) {
    const auto row = static_cast<std::size_t>(lists.index.data[e]);
    if (seen_[row] != now_) {
      seen_[row] = now_;
      position_[row] = 0;
      lists.touched_row.data[touched++] = lists.index.data[e];
    }
    ++position_[row];
  }
  std::sort(lists.touched_row.data, lists.touched_row.data + touched);
  lists.touched_count.data[0] = touched;
  int32_t offset = 0;
  for (int32_t i = 0; i < touched; ++i) {
    int32_t& position = position_[static_cast<std::size_t>(lists.touched_row.data[i])];
    lists.touched_offset.data[i] = offset;
    offset += std::exchange(position, offset);
  }
  lists.touched_offset.data[touched] = offset;
  for (int64_t bag = 0; bag < bags; ++bag) {
    for (int32_t e = lists.offset.data[bag]; e < lists.offset.data[bag + 1]; ++e) {
      const int32_t at = position_[static_cast<std::size_t>(lists.index.data[e])]++;
      lists.touched_bag.data[at] = static_cast<int32_t>(bag);
      lists.touched_weight.data[at] = lists.weight.data[e];
    }
  }
}

template void TouchedRowLister::list(const EdgeLists<float>&);
template void TouchedRowLister::list(const EdgeLists<double>&);

}  // namespace cfaa
