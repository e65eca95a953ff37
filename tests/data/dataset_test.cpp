#include "host/data/dataset.h"

#include <gtest/gtest.h>

#include "host/core/error.h"
#include "host/data/review_text.h"
#include "host/data/statistics.h"
#include "tests/data/raw_reviews.h"
#include "tests/refusal.h"

namespace cfaa::test {
namespace {

class LoadedData : public testing::Test {
 protected:
  void SetUp() override {
    write_text(folder_.path("s"), as_json_2014(random_reviews(2000, 60, 50, 1, "s")));
    write_text(folder_.path("t"), as_json_2014(random_reviews(2000, 60, 50, 2, "t")));
    PrepareOptions options;
    options.source_core = options.target_core = "2,2";
    run_prepare({folder_.path("s")}, {folder_.path("t")}, data_, options);
  }
  std::string error() {
    return error_of([&] { load_dataset(data_); });
  }
  static void expect_same(const Domain& a, const Domain& b) {
    for (const Split split : {Split::train, Split::valid, Split::test}) {
      EXPECT_EQ(a.rows(split).user, b.rows(split).user);
      EXPECT_EQ(a.rows(split).item, b.rows(split).item);
      EXPECT_EQ(a.rows(split).rating, b.rows(split).rating);
      EXPECT_EQ(a.rows(split).label, b.rows(split).label);
      EXPECT_EQ(a.rows(split).time, b.rows(split).time);
    }
    ASSERT_EQ(a.users.size(), b.users.size());
    for (int64_t u = 0; u < a.users.size(); ++u) EXPECT_EQ(a.users[u], b.users[u]);
  }

  TemporaryFolder folder_;
  const std::string data_ = folder_.path("data"), index_ = data_ + "/source/index.bin";
};

TEST_F(LoadedData, AnAbsentOrDamagedIndexIsMadeAgainFromTheTextWithTheSameBytes) {
  const Dataset first = load_dataset(data_);
  const std::string bytes = read_text(index_);
  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 4;

  for (const std::string& broken : {std::string(), damaged, bytes.substr(0, 100), bytes + "x"}) {
    write_text(index_, broken);
    const Dataset again = load_dataset(data_);
    expect_same(first.source, again.source);
    EXPECT_EQ(first.hash, again.hash);
    EXPECT_EQ(read_text(index_), bytes);
  }
}

TEST_F(LoadedData, AChangedTextFileMakesTheIndexStale) {
  const std::string path = data_ + "/source/source.valid.inter";
  const std::string hash = load_dataset(data_).hash;
  std::string text = read_text(path);
  text = text.substr(0, text.rfind('\n', text.size() - 2) + 1);
  write_text(path, text);

  const Dataset data = load_dataset(data_);

  EXPECT_EQ(data.source.valid.size(), std::count(text.begin(), text.end(), '\n') - 1);
  EXPECT_NE(data.hash, hash);
}

TEST_F(LoadedData, TextThatDoesNotReadIsNamedWithItsLine) {
  const std::string path = data_ + "/source/source.valid.inter", good = read_text(path);
  const std::size_t second = good.find('\n') + 1, third = good.find('\n', second) + 1;
  const auto says = [&](const std::string& text, const std::string& wanted) {
    write_text(path, text);
    EXPECT_NE(error().find(wanted), std::string::npos) << error();
  };

  says("x\n", "source.valid.inter:1: the header");
  says(good.substr(0, good.size() - 1), "not whole");
  says(good + good.substr(second, third - second), "do not ascend");
  says(good.substr(0, second) + "nobody\t" + good.substr(good.find('\t', second) + 1),
       "source.valid.inter:2: the user 'nobody' is not in users.tsv");
  says(good.substr(0, second) + "a\tb\n", "five fields");
}

TEST_F(LoadedData, ADirectoryOfAnotherKindIsRefused) {
  std::filesystem::create_directory(folder_.path("empty"));

  EXPECT_NE(
      error_of([&] { load_dataset(folder_.path("empty")); }).find("a directory that prepare made?"),
      std::string::npos);
}

TEST_F(LoadedData, ADamagedTextFileIsRefused) {
  const std::string path = data_ + "/source/source.train.text", good = read_text(path);
  const auto open = [&](const std::string& bytes) {
    write_text(path, bytes);
    ReviewTextFile(path).verify();
  };
  std::string flipped = good, jumping = good;
  flipped.back() ^= 1;
  jumping[32 + 8] = '\xff';

  EXPECT_NO_THROW(open(good));
  EXPECT_THROW(open(flipped), Error);
  EXPECT_THROW(open(jumping), Error);
  EXPECT_THROW(open(good.substr(0, good.size() - 1)), Error);
  EXPECT_THROW(open(good.substr(0, 20)), Error);
  EXPECT_THROW(open(""), Error);
}

TEST_F(LoadedData, StatisticsAddUp) {
  const Dataset data = load_dataset(data_);

  const Statistics s = compute_statistics(data);

  EXPECT_EQ(s.source.interactions,
            data.source.train.size() + data.source.valid.size() + data.source.test.size());
  EXPECT_DOUBLE_EQ(s.source.density, static_cast<double>(s.source.interactions) /
                                         static_cast<double>(s.source.users * s.source.items));
  EXPECT_EQ(s.target.positives, s.target.interactions);
  EXPECT_EQ(s.source.splits[0].cold_users, 0);
  int64_t cold = 0;
  std::set<int32_t> known(data.target.train.user.begin(), data.target.train.user.end());
  std::set<int32_t> tested(data.target.test.user.begin(), data.target.test.user.end());
  for (const int32_t u : tested) cold += !known.contains(u);
  EXPECT_EQ(s.target.splits[2].cold_users, cold);
  EXPECT_EQ(s.common_users, 0);
  EXPECT_GE(s.source.top_tenth_share, s.source.top_item_share);
}

TEST(LongTailPlot, FallsFromLeftToRight) {
  std::vector<int64_t> values;
  for (int i = 0; i < 1000; ++i) values.push_back(1000 / (i + 1));

  const auto lines = long_tail_plot(values, 40, 6);

  ASSERT_EQ(lines.size(), 8u);
  const auto blocks = [](const std::string& line) {
    int n = 0;
    for (std::size_t at = 0; (at = line.find("█", at)) != std::string::npos; at += 3) ++n;
    return n;
  };
  for (std::size_t i = 1; i < 6; ++i) EXPECT_GE(blocks(lines[i]), blocks(lines[i - 1]));
  EXPECT_TRUE(long_tail_plot({}, 40, 6).empty());
}

}  // namespace
}  // namespace cfaa::test
