#include "host/data/readers/row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

auto key(const Interaction& row) {
  return std::tuple(row.user, row.item, row.when(), row.rating, row.review());
}

// Few users, items, times and ratings, so that everything repeats.
std::vector<InteractionRows> random_blocks(unsigned seed, uint32_t users,
                                           const std::shared_ptr<Spool>& spool) {
  static constexpr const char* kTexts[] = {"", "a", "b", "bc"};
  std::mt19937 random(seed);
  std::vector<InteractionRows> blocks;
  for (int b = 0; b < 7; ++b) {
    blocks.emplace_back(SpoolAllocator<Interaction>(spool));
    for (unsigned r = random() % 400; r > 0; --r) {
      const char* text = kTexts[random() % 4];
      blocks.back().push_back({static_cast<uint32_t>(random() % users * (random() % users) / users),
                               static_cast<uint32_t>(random() % 5), float(random() % 2),
                               static_cast<uint32_t>(std::char_traits<char>::length(text)),
                               static_cast<int64_t>(random() % 3) - 1, text});
    }
  }
  return blocks;
}

TEST(RowOrder, IsTheSameFromAnyBucketsMemoryAndThreads) {
  const TemporaryFolder folder;
  const auto none_in_memory = std::make_shared<Spool>(folder.path(), 0);
  for (unsigned seed = 0; seed < 10; ++seed) {
    const uint32_t users = seed % 2 == 0 ? 3 : 200;
    std::vector<Interaction> expected;
    for (const InteractionRows& block : random_blocks(seed, users, nullptr)) {
      expected.insert(expected.end(), block.begin(), block.end());
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return key(a) < key(b); });

    for (const std::size_t bucket : {1, 10, 100, 1 << 20}) {
      for (const int threads : {1, 3}) {
        for (const auto& spool : {std::shared_ptr<Spool>(), none_in_memory}) {
          ThreadPool pool(threads);
          const InteractionRows rows =
              in_row_order(random_blocks(seed, users, spool), users, pool, bucket);
          ASSERT_TRUE(std::equal(rows.begin(), rows.end(), expected.begin(), expected.end(),
                                 [](const auto& a, const auto& b) { return key(a) == key(b); }))
              << "seed " << seed << ", buckets of " << bucket << ", threads " << threads;
        }
      }
    }
  }
}

TEST(RowOrder, OfNoBlocksIsNoRow) {
  ThreadPool pool(1);

  EXPECT_TRUE(in_row_order({}, 5, pool).empty());
}

}  // namespace
}  // namespace cfaa::test
