#include "host/io/parquet.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/paths.h"
#include "tests/refusal.h"

namespace cfaa::test {
namespace {

const std::string kReviews = fixture_path("parquet/reviews.parquet");

class Parquet : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_parquet()) GTEST_SKIP() << "this build has no Arrow (-DCFAA_ARROW=ON)";
  }
};

// A column's values, as text and as numbers, of all groups in order.
struct Values {
  std::vector<std::string> text;
  std::vector<double> number;
};

Values values_of(const ParquetReader& reader, const std::string& column) {
  Values values;
  for (int64_t group = 0; group < reader.groups(); ++group) {
    reader.read(group, {"", column}, [&](const ParquetRows& rows) {
      for (int64_t r = 0; r < rows.count(); ++r) {
        std::string storage;
        EXPECT_EQ(rows.text(0, r, storage), "");
        EXPECT_TRUE(std::isnan(rows.number(0, r)));
        values.text.emplace_back(rows.text(1, r, storage));
        values.number.push_back(rows.number(1, r));
      }
    });
  }
  return values;
}

TEST_F(Parquet, ColumnsOfEveryTypeReadAsTextAndNumbers) {
  const ParquetReader reader(kReviews);
  EXPECT_EQ(reader.rows(), 600);
  EXPECT_EQ(reader.groups(), 4);
  const auto text = [&](const std::string& column) { return values_of(reader, column).text; };
  const auto number = [&](const std::string& column) { return values_of(reader, column).number; };

  EXPECT_EQ(text("user_id")[399], "u39");
  EXPECT_EQ(text("parent_asin")[2], "i14");
  EXPECT_EQ(text("text")[22], "");
  EXPECT_EQ(text("text")[599], "text 599 ☕");
  EXPECT_EQ(text("view")[3], "item number 21");
  EXPECT_EQ(text("user_number")[45], "5");
  EXPECT_EQ(text("item_number")[1], "9223372036854775815");
  EXPECT_EQ(text("nothing")[9], "");
  EXPECT_EQ(number("rating")[4], 5);
  EXPECT_EQ(number("stars")[4], 5);
  EXPECT_EQ(number("spelled")[4], 5);
  EXPECT_EQ(number("timestamp")[599], 1300000599);
  EXPECT_EQ(number("day")[1], 1577923200);  // 2 January 2020
  EXPECT_EQ(number("milliseconds")[1], 1300000001000);
  EXPECT_TRUE(std::isnan(number("milliseconds")[11]));
  EXPECT_TRUE(std::isnan(number("nothing")[9]));
  EXPECT_TRUE(std::isnan(number("text")[1]));
}

TEST_F(Parquet, ColumnsThatHoldNoSingleValueAreNotListed) {
  const std::vector<std::string> columns = ParquetReader(kReviews).columns();

  EXPECT_EQ(std::count(columns.begin(), columns.end(), "images"), 0);
  EXPECT_EQ(std::count(columns.begin(), columns.end(), "view"), 1);
  EXPECT_EQ(columns.size(), 13u);
}

TEST_F(Parquet, TimesThatKnowTheirUnitAreKnown) {
  const ParquetReader reader(kReviews);

  EXPECT_TRUE(reader.holds_times("timestamp"));
  EXPECT_TRUE(reader.holds_times("day"));
  EXPECT_FALSE(reader.holds_times("milliseconds"));
  EXPECT_FALSE(reader.holds_times("not there"));
}

TEST_F(Parquet, WhatIsWrittenReadsBack) {
  const TemporaryFolder folder;
  const std::string path = folder.path("ids.parquet");
  constexpr int64_t kRows = 100000;
  std::vector<float> vectors(kRows * 3);
  std::iota(vectors.begin(), vectors.end(), 0.0f);
  std::string id;

  write_parquet(path, kRows,
                {{"id",
                  [&](int64_t row) {
                    id = "☕" + std::to_string(row);
                    return std::string_view(id);
                  }},
                 {"vector", {}, vectors.data(), 3}});

  EXPECT_TRUE(is_parquet(path));
  const ParquetReader reader(path);
  const Values ids = values_of(reader, "id");
  ASSERT_EQ(ids.text.size(), static_cast<std::size_t>(kRows));
  for (const int64_t row : {int64_t{0}, int64_t{65535}, int64_t{65536}, kRows - 1}) {
    EXPECT_EQ(ids.text[static_cast<std::size_t>(row)], "☕" + std::to_string(row));
  }
}

TEST_F(Parquet, ADamagedFileIsNamed) {
  const std::string whole = read_text(kReviews);
  const auto refusal = [](const std::string& content) {
    return refusal_of<ParquetReader>("damaged.parquet", content);
  };

  EXPECT_NE(refusal("PAR1"), "");
  EXPECT_NE(refusal(whole.substr(0, whole.size() / 2)), "");
  const TemporaryFolder folder;
  write_text(folder.path("data"), whole.substr(0, 4) + std::string(2000, 'x') + whole.substr(2004));
  const std::string error =
      error_of([&] { values_of(ParquetReader(folder.path("data")), "user_id"); });
  EXPECT_NE(error.find(folder.path("data")), std::string::npos) << error;
}

TEST(IsParquet, TellsByTheFirstBytesOfARegularFile) {
  const TemporaryFolder folder;
  write_text(folder.path("short"), "PAR");
  write_text(folder.path("text"), "{\"a\": 1}");

  EXPECT_TRUE(is_parquet(kReviews));
  EXPECT_FALSE(is_parquet(folder.path("short")));
  EXPECT_FALSE(is_parquet(folder.path("text")));
  EXPECT_FALSE(is_parquet(folder.path()));
  EXPECT_FALSE(is_parquet("/dev/null"));
  EXPECT_FALSE(is_parquet("-"));
}

TEST(WithoutArrow, AParquetFileIsRefusedWithWhatToDo) {
  if (has_parquet()) GTEST_SKIP() << "this build has Arrow";

  const std::string error = error_of([] { const ParquetReader reader(kReviews); });

  EXPECT_NE(error.find("reviews.parquet"), std::string::npos) << error;
  EXPECT_NE(error.find("-DCFAA_ARROW=ON (tools/setup arrow)"), std::string::npos) << error;
}

}  // namespace
}  // namespace cfaa::test
