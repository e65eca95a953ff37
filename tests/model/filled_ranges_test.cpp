// A step copies what its batch holds, not what it has room for.

#include "host/model/filled_ranges.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cfaa::test {
namespace {

// N 256 with histories of up to 1,000 entries, of which every row has `entries`.
struct FilledBatch {
  explicit FilledBatch(int32_t entries) : layout(shape()), memory(layout.bytes(), std::byte{0xEE}) {
    batch = layout.at(memory.data());
    for (DomainBatch<float>& domain : batch.domain) {
      for (SideBatch<float>& side : domain.side) {
        for (int64_t row = 0; row < side.history.offset.size(); ++row) {
          side.history.offset.data[row] = static_cast<int32_t>(row) * entries;
        }
        side.history.touched_count.data[0] = 7;
      }
    }
  }

  static BatchShape shape() {
    BatchShape shape;
    shape.n = 256;
    shape.history_entries = 1000;
    shape.history_rows = {{{5000, 5000}, {5000, 5000}}};
    return shape;
  }
  std::size_t copied() const {
    std::size_t count = 0;
    for (const ByteRange& range : filled_ranges(batch, memory.data(), memory.size())) {
      count += range.count;
    }
    return count;
  }

  BatchLayout<float> layout;
  std::vector<std::byte> memory;
  Batch<float> batch;
};

TEST(FilledRanges, LeaveOutTheRoomThatListsDoNotUse) {
  const FilledBatch batch(10);

  // Four sides with four lists of 2,560 entries, and less than 64 KiB beside each of what is short.
  EXPECT_LT(batch.copied(), 4 * 4 * 2560 * 4 + 4 * 2 * (64 << 10));
  EXPECT_GT(batch.memory.size(), 4 * 4 * 256000 * 4u);
}

TEST(FilledRanges, AreTheWholeOfAFullBatch) {
  FilledBatch batch(1000);
  for (DomainBatch<float>& domain : batch.batch.domain) {
    for (SideBatch<float>& side : domain.side) side.history.touched_count.data[0] = 5000;
  }

  EXPECT_EQ(batch.copied(), batch.memory.size());
}

TEST(FilledRanges, HoldEveryEntryInAscendingOrder) {
  FilledBatch batch(10);
  const EdgeLists<float>& lists = batch.batch.domain[kTarget].side[kItem].history;
  for (int64_t entry = 0; entry < 2560; ++entry) lists.touched_weight.data[entry] = 3.0f;
  std::vector<std::byte> copy(batch.memory.size());

  std::size_t end = 0;
  for (const ByteRange& range :
       filled_ranges(batch.batch, batch.memory.data(), batch.memory.size())) {
    EXPECT_TRUE(range.first > end || range.first == 0);
    end = range.first + range.count;
    std::memcpy(copy.data() + range.first, batch.memory.data() + range.first, range.count);
  }

  EXPECT_LE(end, copy.size());
  const EdgeLists<float> copied = batch.layout.at(copy.data()).domain[kTarget].side[kItem].history;
  EXPECT_EQ(copied.offset.data[256], 2560);
  for (int64_t entry = 0; entry < 2560; ++entry) ASSERT_EQ(copied.touched_weight.data[entry], 3.0f);
}

}  // namespace
}  // namespace cfaa::test
