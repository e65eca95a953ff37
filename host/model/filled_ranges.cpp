#include "host/model/filled_ranges.h"

#include <algorithm>

#include "host/core/error.h"

namespace cfaa {
namespace {

// A copy costs a few microseconds whatever its size, in which a bus moves about as much.
constexpr std::size_t kShortestGap = 64 << 10;

// Collects what is not filled.
class Gaps {
 public:
  explicit Gaps(const void* memory) : memory_(static_cast<const char*>(memory)) {}

  // Elements from `filled` on hold nothing.
  template <class T>
  void add(VectorView<T> list, int64_t filled) {
    CFAA_ASSERT(filled >= 0 && filled <= list.size());
    const auto first =
        static_cast<std::size_t>(reinterpret_cast<const char*>(list.data + filled) - memory_);
    const auto count = static_cast<std::size_t>(list.size() - filled) * sizeof(T);
    if (count >= kShortestGap) gaps_.push_back({first, count});
  }

  template <class T>
  void add(const EdgeLists<T>& lists) {
    if (lists.offset.data == nullptr) return;
    const int64_t entries = lists.offset.data[lists.offset.size() - 1];
    const int64_t touched = lists.touched_count.data[0];
    add(lists.index, entries);
    add(lists.weight, entries);
    add(lists.touched_row, touched);
    add(lists.touched_offset, touched + 1);
    add(lists.touched_bag, entries);
    add(lists.touched_weight, entries);
  }

  std::vector<ByteRange> between(std::size_t bytes) {
    std::sort(gaps_.begin(), gaps_.end(),
              [](const ByteRange& a, const ByteRange& b) { return a.first < b.first; });
    std::vector<ByteRange> ranges;
    std::size_t at = 0;
    for (const ByteRange& gap : gaps_) {
      if (gap.first > at) ranges.push_back({at, gap.first - at});
      at = gap.first + gap.count;
    }
    if (at < bytes) ranges.push_back({at, bytes - at});
    return ranges;
  }

 private:
  const char* memory_;
  std::vector<ByteRange> gaps_;
};

}  // namespace

template <class T>
std::vector<ByteRange> filled_ranges(const Batch<T>& batch, const void* memory, std::size_t bytes) {
  Gaps gaps(memory);
  for (const DomainBatch<T>& domain : batch.domain) {
    for (const SideBatch<T>& side : domain.side) {
      gaps.add(side.id);
      gaps.add(side.history);
    }
  }
  return gaps.between(bytes);
}

template std::vector<ByteRange> filled_ranges<float>(const Batch<float>&, const void*, std::size_t);
template std::vector<ByteRange> filled_ranges<double>(const Batch<double>&, const void*,
                                                      std::size_t);

}  // namespace cfaa
