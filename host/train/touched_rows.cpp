#include "host/train/touched_rows.h"

#include <bit>
#include <utility>

namespace cfaa {

template <class T>
void TouchedRowLister::list(const EdgeLists<T>& lists) {
  const int64_t bags = lists.offset.size() - 1;
  const int32_t entries = lists.offset.data[bags];
  for (int32_t e = 0; e < entries; ++e) {
    const auto row = static_cast<std::size_t>(lists.index.data[e]);
    const uint64_t bit = uint64_t{1} << row % 64;
    if ((touched_[row / 64] & bit) == 0) {
      touched_[row / 64] |= bit;
      position_[row] = 0;
    }
    ++position_[row];
  }
  int32_t touched = 0, offset = 0;
  for (std::size_t word = 0; word < touched_.size(); ++word) {
    for (uint64_t bits = std::exchange(touched_[word], 0); bits != 0; bits &= bits - 1) {
      const std::size_t row = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
      lists.touched_row.data[touched] = static_cast<int32_t>(row);
      lists.touched_offset.data[touched] = offset;
      offset += std::exchange(position_[row], offset);
      ++touched;
    }
  }
  lists.touched_count.data[0] = touched;
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
