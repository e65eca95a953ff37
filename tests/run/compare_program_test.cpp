// `cfaa_gpu compare` on synthetic results.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/compare.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

class CompareProgram : public testing::Test {
 protected:
  void result(const std::string& place, double ndcg, json more = json::object()) const {
    std::filesystem::create_directories(folder_.path(place));
    more["target"] = {{"NDCG@10", ndcg}, {"users", 5}};
    write_text(folder_.path(place + "/result.json"), more.dump());
  }
  void users(const std::string& place, const std::map<std::string, double>& ndcg) const {
    std::string table = "user_id\tpositives\tNDCG@10\n";
    for (const auto& [user, value] : ndcg) table += fmt::format("{}\t1\t{}\n", user, value);
    write_text(folder_.path(place + "/target_users.tsv"), table);
  }
  Outcome compare(const std::string& arguments) const {
    return run_program("compare --metrics NDCG@10 " + arguments);
  }
  json rows(const std::string& arguments) const {
    const Outcome outcome = compare("--json " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out)["rows"];
  }
  std::string path(const std::string& name) const { return folder_.path(name); }

  TemporaryFolder folder_;
};

TEST_F(CompareProgram, SeedsAreOneRowPairedWithTheFirst) {
  const std::vector<double> base = {0.1, 0.2, 0.3, 0.2, 0.1},
                            more = {0.01, 0.02, -0.005, 0.03, 0.015};
  for (std::size_t s = 0; s < base.size(); ++s) {
    result("base/seed-" + std::to_string(s), base[s]);
    result("full/seed-" + std::to_string(s), base[s] + more[s]);
  }
  result("full/seed-10", 0.9);

  const json found = rows(path("base") + " " + path("full"));

  ASSERT_EQ(found.size(), 2u);
  const json first = found[0]["metrics"]["NDCG@10"], second = found[1]["metrics"]["NDCG@10"];
  EXPECT_TRUE(close(first["mean"].get<double>(), 0.18, 1e-12));
  EXPECT_TRUE(close(first["sd"].get<double>(), 0.0836660026534076, 1e-9));
  EXPECT_EQ(found[1]["seeds"], json::array({0, 1, 2, 3, 4, 10}));
  EXPECT_EQ(second["by_seed"]["pairs"], 5) << "seed 10 has no partner";
  EXPECT_TRUE(close(second["by_seed"]["difference"].get<double>(), 0.014, 1e-9));
  EXPECT_TRUE(close(second["by_seed"]["p"].get<double>(), 0.07285505961025576, 1e-6));
}

TEST_F(CompareProgram, AResultWithoutChanceStandsForEverySeed) {
  result("popularity", 0.1, {{"every_seed", true}, {"baseline", "popularity"}});
  for (const int seed : {0, 1, 2}) result("mf/seed-" + std::to_string(seed), 0.2 + 0.1 * seed);
  result("knn", 0.3, {{"every_seed", true}});

  const json found = rows(path("popularity") + " " + path("mf") + " " + path("knn"));

  EXPECT_EQ(found[0]["variant"], "popularity");
  EXPECT_EQ(found[1]["metrics"]["NDCG@10"]["by_seed"]["pairs"], 3);
  EXPECT_TRUE(close(found[1]["metrics"]["NDCG@10"]["by_seed"]["p"].get<double>(),
                    0.0741799002274485, 1e-6));
  EXPECT_EQ(found[2]["metrics"]["NDCG@10"]["by_seed"]["pairs"], 1);
}

TEST_F(CompareProgram, RowsAreSortedByValidationAndTestedAgainstTheFirstGiven) {
  const auto valid = [](double value) { return json{{"metric", "NDCG@10"}, {"valid", value}}; };
  result("a", 0.9, valid(0.1));
  result("b", 0.2, valid(0.3));
  result("c", 0.5);
  result("d", 0.4, valid(0.2));

  const std::string all = path("a") + " " + path("b") + " " + path("c") + " " + path("d");
  const json table = json::parse(compare("--json " + all).out);
  const Outcome shown = compare(all);

  EXPECT_EQ(table["reference"], path("a"));
  std::vector<std::string> order;
  for (const json& row : table["rows"]) order.push_back(row["run"]);
  EXPECT_EQ(order, (std::vector<std::string>{path("b"), path("d"), path("a"), path("c")}));
  EXPECT_EQ(table["rows"][0]["validation"]["mean"], 0.3);
  EXPECT_TRUE(table["rows"][0]["metrics"]["NDCG@10"].contains("by_seed"));
  EXPECT_FALSE(table["rows"][2]["metrics"]["NDCG@10"].contains("by_seed"));
  EXPECT_NE(shown.out.find("validation"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("not kept"), std::string::npos) << shown.out;
}

TEST_F(CompareProgram, OnePairIsNotTested) {
  result("a", 0.1);
  result("b", 0.2);

  const json found = rows(path("a") + " " + path("b"));
  const Outcome table = compare(path("a") + " " + path("b"));

  EXPECT_FALSE(found[1]["metrics"]["NDCG@10"]["by_seed"].contains("p"));
  EXPECT_EQ(found[1]["metrics"]["NDCG@10"]["by_user"]["pairs"], 0);
  EXPECT_NE(table.out.find("one seed: no test"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("not kept"), std::string::npos) << table.out;
}

TEST_F(CompareProgram, TheFolderOfAllRunsIsSaidOnce) {
  result("some/deep/a", 0.1);
  result("some/other/b", 0.2);

  const Outcome two = compare(path("some/deep/a") + " " + path("some/other/b"));
  const Outcome one = compare(path("some/deep/a"));

  EXPECT_NE(two.out.find("; runs in " + path("some") + "\n"), std::string::npos) << two.out;
  EXPECT_NE(two.out.find("\ndeep/a "), std::string::npos) << two.out;
  EXPECT_NE(two.out.find("\nother/b\n"), std::string::npos) << two.out;
  EXPECT_NE(one.out.find("\n" + path("some/deep/a") + " "), std::string::npos) << one.out;
}

// Two seeds of b are averaged user by user; the order of the lines does not matter.
TEST_F(CompareProgram, UsersArePairedByTheirIds) {
  result("a", 0.1);
  result("b/seed-0", 0.2);
  result("b/seed-1", 0.3);
  users("a", {{"x", 0.1}, {"y", 0.2}, {"z", 0.0}, {"w", 0.3}, {"only_a", 0.9}});
  users("b/seed-0", {{"w", 0.31}, {"z", 0.02}, {"y", 0.19}, {"x", 0.12}, {"v", 0.5}});
  users("b/seed-1", {{"w", 0.33}, {"z", 0.00}, {"y", 0.21}, {"x", 0.16}, {"v", 0.5}});

  const json test = rows(path("a") + " " + path("b"))[1]["metrics"]["NDCG@10"]["by_user"];

  // Differences 0.04, 0, 0.01, 0.02: scipy.stats.ttest_1samp.
  EXPECT_EQ(test["pairs"], 4);
  EXPECT_TRUE(close(test["difference"].get<double>(), 0.0175, 1e-9));
  EXPECT_TRUE(close(test["standard_error"].get<double>(), 0.008539125638299666, 1e-9));
  EXPECT_TRUE(close(test["p"].get<double>(), 0.13284184055977566, 1e-9));
}

TEST_F(CompareProgram, ADamagedTableOfUsersIsRefusedWithItsLine) {
  result("a", 0.1);
  write_text(path("a/target_users.tsv"), "user_id\tpositives\tNDCG@10\nx\t1\t0.5\ny\t1\n");

  const Outcome outcome = compare(path("a"));

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("line 3"), std::string::npos) << outcome.err;
}

TEST_F(CompareProgram, RefusesWhatCannotBeCompared) {
  result("a", 0.1, {{"dataset", "x"}});
  result("b", 0.2, {{"dataset", "y"}});
  std::filesystem::create_directories(path("empty"));

  const Outcome other_data = compare(path("a") + " " + path("b"));
  const Outcome unfinished = compare(path("a") + " " + path("empty"));
  const Outcome unknown = run_program("compare --metrics NDCG@7 " + path("a"));

  EXPECT_EQ(other_data.code, 2);
  EXPECT_NE(other_data.err.find("other data"), std::string::npos) << other_data.err;
  EXPECT_EQ(unfinished.code, 2);
  EXPECT_NE(unfinished.err.find("no result.json"), std::string::npos) << unfinished.err;
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("NDCG@7"), std::string::npos) << unknown.err;
}

}  // namespace
}  // namespace cfaa::test
