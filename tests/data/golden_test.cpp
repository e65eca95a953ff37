// Two real Amazon files against counts from golden_counts.py, which shares nothing with the
// project.

#include <gtest/gtest.h>

#include "host/data/dataset.h"
#include "tests/data/raw_reviews.h"
#include "tests/paths.h"

namespace cfaa::test {
namespace {

const std::string kAmazon = golden_path("data/amazon/");
const std::string kMusic = kAmazon + "reviews_Digital_Music_5.part.json.gz";
const std::string kInstruments = kAmazon + "reviews_Musical_Instruments_5.json.gz";

class AmazonFiles : public testing::Test {
 protected:
  void SetUp() override { CFAA_SKIP_WITHOUT_GOLDEN("data/amazon"); }
  TemporaryFolder folder_;
};

nlohmann::json counts(int64_t interactions, int64_t users, int64_t items) {
  return {{"interactions", interactions}, {"users", users}, {"items", items}};
}

TEST_F(AmazonFiles, GiveTheGoldenCountsAtEveryStep) {
  const auto report = run_prepare({kMusic}, {kInstruments}, folder_.path("data"));

  const auto after = [&](const std::string& step, const std::string& domain) -> nlohmann::json {
    for (const auto& entry : report["steps"]) {
      if (entry["step"] == step && entry["domain"] == domain) return entry["after"];
    }
    return nullptr;
  };
  EXPECT_EQ(after("duplicates", "source"), counts(6908, 2490, 382));
  EXPECT_EQ(after("duplicates", "target"), counts(10261, 1429, 900));
  EXPECT_EQ(after("core", "source"), counts(2480, 268, 206));
  EXPECT_EQ(after("core", "target"), counts(10261, 1429, 900));
  EXPECT_EQ(report["overlap"], (nlohmann::json{{"users", 1}, {"items", 0}}));
  EXPECT_EQ(after("overlap", "target"), counts(10255, 1428, 900));
  EXPECT_EQ(report["positives"]["source"], 2214);
  EXPECT_EQ(after("negatives", "target"), counts(9018, 1428, 900));
  const Dataset data = load_dataset(folder_.path("data"));
  EXPECT_EQ(data.source.train.size(), 1992);
  EXPECT_EQ(data.source.valid.size(), 236);
  EXPECT_EQ(data.source.test.size(), 252);
  EXPECT_EQ(data.target.train.size(), 7235);
  EXPECT_EQ(data.target.valid.size(), 894);
  EXPECT_EQ(data.target.test.size(), 889);
}

TEST_F(AmazonFiles, HalfOfTheTargetIsTheGoldenHalf) {
  PrepareOptions options;
  options.target_keep = 0.5;

  const auto report = run_prepare({kMusic}, {kInstruments}, folder_.path("data"), options);

  EXPECT_EQ(report["result"]["target"]["interactions"], 4453);
  EXPECT_EQ(report["result"]["target"]["users"], 1379);
  EXPECT_EQ(report["result"]["target"]["items"], 879);
}

}  // namespace
}  // namespace cfaa::test
