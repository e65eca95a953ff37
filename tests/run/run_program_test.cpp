// A run, once trained, is known by its directory: evaluate, discrepancy and compare take it.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/data/review_text.h"
#include "tests/compare.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

// 24 users in two groups, each of which likes half of the 16 items of a domain.
void write_domain(const TemporaryFolder& folder, const std::string& domain) {
  const std::string at = "data/" + domain + "/";
  std::filesystem::create_directories(folder.path(at));
  const std::string header =
      "user_id:token\titem_id:token\trating:float\tlabel:float\ttimestamp:float\n";
  std::string train = header, valid = header, test = header;
  std::vector<std::string_view> texts;
  std::string users = "index\tuser_id\ttraining_interactions\n";
  std::string items = "index\titem_id\ttraining_interactions\n";
  for (int i = 0; i < 16; ++i)
    items += std::to_string(i) + "\ti" + std::to_string(100 + i) + "\t9\n";
  for (int u = 0; u < 24; ++u) {
    const std::string user = "u" + std::to_string(100 + u);
    users += std::to_string(u) + "\t" + user + "\t6\n";
    for (int i = 0; i < 8; ++i) {
      std::string& rows = i == u / 2 % 8 ? test : i == (u / 2 + 3) % 8 ? valid : train;
      rows += user + "\ti" + std::to_string(100 + u % 2 * 8 + i) + "\t5\t1\t0\n";
      if (&rows == &train) texts.emplace_back("fine");
    }
  }
  write_text(folder.path(at + "users.tsv"), users);
  write_text(folder.path(at + "items.tsv"), items);
  write_text(folder.path(at + domain + ".train.inter"), train);
  write_text(folder.path(at + domain + ".valid.inter"), valid);
  write_text(folder.path(at + domain + ".test.inter"), test);
  OutputFile text(folder.path(at + domain + ".train.text"));
  write_review_text(text, texts);
  text.close();
}

class RunProgram : public testing::Test {
 protected:
  RunProgram() {
    write_domain(folder_, "source");
    write_domain(folder_, "target");
    trained_ = run_program("train " + path("data") + " --out " + path("run") +
                           " --set 'model.inputs=[\"id\",\"history\"]' --set model.dim=6"
                           " --set 'model.layers=[8]' --set train.epochs=2"
                           " --set train.batch_size=32 --json");
  }
  std::string path(const std::string& name) const { return folder_.path(name); }

  TemporaryFolder folder_;
  Outcome trained_;
};

TEST_F(RunProgram, EvaluateRepeatsTheResultOfTraining) {
  ASSERT_EQ(trained_.code, 0) << trained_.err;
  const json result = json::parse(read_text(path("run/result.json")));

  const Outcome target = run_program("evaluate " + path("run") + " --json");
  const Outcome source = run_program("evaluate " + path("run") + " --domain source --json");

  ASSERT_EQ(target.code, 0) << target.err;
  ASSERT_EQ(source.code, 0) << source.err;
  EXPECT_EQ(json::parse(target.out)["NDCG@10"], result["target"]["NDCG@10"]);
  EXPECT_EQ(json::parse(source.out)["NDCG@10"], result["source"]["NDCG@10"]);
  EXPECT_EQ(json::parse(target.out)["run"], path("run"));
}

TEST_F(RunProgram, EvaluateRefusesOtherScoresAndWholeSeedFolders) {
  ASSERT_EQ(trained_.code, 0) << trained_.err;
  std::filesystem::create_directories(path("several"));
  std::filesystem::rename(path("run"), path("several/seed-3"));

  const Outcome scores = run_program("evaluate " + path("several/seed-3") + " --scores x.npy");
  const Outcome several = run_program("evaluate " + path("several"));

  EXPECT_EQ(scores.code, 2);
  EXPECT_NE(scores.err.find("has its own scores"), std::string::npos) << scores.err;
  EXPECT_EQ(several.code, 2);
  EXPECT_NE(several.err.find("seed-3"), std::string::npos) << several.err;
}

TEST_F(RunProgram, DiscrepancyReportsUsersAndItems) {
  ASSERT_EQ(trained_.code, 0) << trained_.err;

  const Outcome outcome = run_program("discrepancy " + path("run") + " --json");

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  for (const char* loss : {"vertical", "horizontal"}) {
    EXPECT_TRUE(close(
        report[loss].get<double>(),
        report["users"][loss]["loss"].get<double>() + report["items"][loss]["loss"].get<double>(),
        1e-12));
    EXPECT_GT(report[loss].get<double>(), 0);
  }
  EXPECT_EQ(report["users"]["shape"]["source"], 24);
  EXPECT_EQ(report["items"]["shape"]["target"], 16);
  EXPECT_LE(report["items"]["proxy_distance"]["distance"].get<double>(), 2);
}

TEST_F(RunProgram, CompareSetsARunBesideABaseline) {
  ASSERT_EQ(trained_.code, 0) << trained_.err;
  ASSERT_EQ(run_program("baseline " + path("data") + " popularity --out " + path("pop")).code, 0);

  const Outcome outcome = run_program("compare --json " + path("pop") + " " + path("run"));

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json rows = json::parse(outcome.out)["rows"];
  EXPECT_EQ(rows[0]["variant"], "popularity");
  EXPECT_EQ(rows[1]["metrics"]["NDCG@10"]["by_seed"]["pairs"], 1);
  EXPECT_EQ(rows[1]["metrics"]["NDCG@10"]["by_user"]["pairs"], 24);
  EXPECT_TRUE(close(rows[1]["metrics"]["NDCG@10"]["by_user"]["difference"].get<double>(),
                    rows[1]["metrics"]["NDCG@10"]["mean"].get<double>() -
                        rows[0]["metrics"]["NDCG@10"]["mean"].get<double>(),
                    1e-9));
}

}  // namespace
}  // namespace cfaa::test
