// A run, once trained, is known by its directory: evaluate, discrepancy and compare take it.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/compare.h"
#include "tests/run/small_runs.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

class RunProgram : public SmallRuns {
 protected:
  RunProgram() : trained_(train("run", "--json")) {}

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
