#include "host/train/touched_rows.h"

#include <gtest/gtest.h>

namespace cfaa::test {
namespace {

template <class T>
VectorView<T> view(std::vector<T>& values) {
  return {values.data(), {static_cast<int64_t>(values.size())}};
}

// Three bags with rows {4, 1}, {} and {1, 4, 4} of a table.
struct Lists {
  std::vector<int32_t> offset = {0, 2, 2, 5}, index = {4, 1, 1, 4, 4};
  std::vector<float> weight = {0.5f, 1, 2, 3, 4};
  std::vector<int32_t> count = {-1}, row = std::vector<int32_t>(5, -1),
                       row_offset = std::vector<int32_t>(6, -1), bag = std::vector<int32_t>(5, -1);
  std::vector<float> row_weight = std::vector<float>(5);

  EdgeLists<float> views() {
    return {view(offset), view(index),      view(weight), view(count),
            view(row),    view(row_offset), view(bag),    view(row_weight)};
  }
};

TEST(TouchedRows, AreSortedWithTheirBagsInTheBatchsOrder) {
  Lists lists;
  TouchedRowLister lister(6);

  lister.list(lists.views());

  EXPECT_EQ(lists.count[0], 2);
  EXPECT_EQ(std::vector(lists.row.begin(), lists.row.begin() + 2), (std::vector{1, 4}));
  EXPECT_EQ(std::vector(lists.row_offset.begin(), lists.row_offset.begin() + 3),
            (std::vector{0, 2, 5}));
  EXPECT_EQ(lists.bag, (std::vector{0, 2, 0, 2, 2}));
  EXPECT_EQ(lists.row_weight, (std::vector{1.0f, 2.0f, 0.5f, 3.0f, 4.0f}));
}

TEST(TouchedRows, DoNotDependOnTheBatchBefore) {
  Lists lists, again;
  TouchedRowLister lister(6);
  lister.list(lists.views());

  lister.list(again.views());

  EXPECT_EQ(again.row_offset, lists.row_offset);
  EXPECT_EQ(again.bag, lists.bag);
}

TEST(TouchedRows, MayBeOneToABag) {
  Lists lists;
  lists.offset.resize(4);

  fill_single_rows(lists.views(), [](int32_t bag) { return 2 * bag; });

  EXPECT_EQ(lists.offset, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(std::vector(lists.index.begin(), lists.index.begin() + 3), (std::vector{0, 2, 4}));
  EXPECT_EQ(lists.weight[2], 1.0f);
}

}  // namespace
}  // namespace cfaa::test
