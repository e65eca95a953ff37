#include "host/data/id_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cfaa::test {
namespace {

TEST(IdTable, NumbersIdsAsTheyComeHoweverLongTheirCommonFront) {
  std::vector<std::string> ids;
  for (const std::size_t front : {0, 5, 22, 25, 26, 27, 100, 1000}) {
    for (int i = 0; i < 300; ++i) ids.push_back(std::string(front, 'x') + std::to_string(i));
  }
  IdTable table;

  for (uint32_t i = 0; i < ids.size(); ++i) EXPECT_EQ(table.intern(ids[i]), i);

  for (uint32_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(table.intern(ids[i]), i);
    EXPECT_EQ(table.ids()[i], ids[i]);
  }
  EXPECT_EQ(table.ids().size(), ids.size());
}

}  // namespace
}  // namespace cfaa::test
