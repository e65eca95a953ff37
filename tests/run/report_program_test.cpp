// `cfaa_gpu report`: what the page holds, what it never does, and, where a browser is installed,
// what it shows.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "host/run/report/report.h"
#include "tests/paths.h"
#include "tests/program.h"
#include "tests/run/small_runs.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kScript = "</script><script>document.title='broken'</script>";

json data_of(const std::string& page) {
  const std::string text = read_text(page), start = "id=\"data\">";
  const std::size_t from = text.find(start) + start.size();
  return json::parse(text.substr(from, text.find("</script>", from) - from));
}

class ReportProgram : public testing::Test {
 protected:
  void SetUp() override {
    write_domain(folder_, "source");
    write_domain(folder_, "target");
    write_text(folder_.path("data/target/item_titles.tsv"),
               std::string("item_id\ttitle\ni100\t") + kScript + "\n");
    ASSERT_EQ(run_program("train " + data() + " --out " + folder_.path("default")).code, 0);
    ASSERT_EQ(run_program("baseline " + data() + " popularity --out " + folder_.path("pop")).code,
              0);
  }
  std::string data() const { return folder_.path("data"); }
  std::string page() const { return folder_.path("report.html"); }
  Outcome report(const std::string& more = "") const {
    return run_program("report " + folder_.path("default") + " " + folder_.path("pop") + " --out " +
                       page() + " " + more);
  }
  json data_of_page() const { return data_of(page()); }

  TemporaryFolder folder_;
};

TEST_F(ReportProgram, HoldsTheComparisonAndEveryUsersLists) {
  const Outcome outcome = report();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json page = data_of_page();

  const Outcome compared = run_program("compare --json --metrics NDCG@10,Recall@10,HR@10,MRR@10 " +
                                       folder_.path("default") + " " + folder_.path("pop"));
  EXPECT_EQ(page["comparison"], json::parse(compared.out));
  EXPECT_EQ(page["users"].size(), 24u);
  EXPECT_EQ(page["listed"].size(), 2u);
  EXPECT_FALSE(page["weights"].empty());
  const json& user = page["users"][3];  // [user, history, held out, lists, validation]
  const std::size_t mine = page["listed"][0] == folder_.path("default") ? 0 : 1;
  const json list = json::parse(run_program("recommend --json " + folder_.path("default") +
                                            " --user " + user[0].get<std::string>())
                                    .out)["items"];
  ASSERT_EQ(user[3][mine].size(), list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json& shown = user[3][mine][i];  // [item, score, signal, reasons]
    const json& item = page["items"][shown[0].get<std::size_t>()];
    EXPECT_EQ(item, json({list[i]["item"], list[i]["title"], list[i]["review"]}));
    const double score = list[i]["score"].get<double>();
    EXPECT_NEAR(shown[1].get<double>(), score, 1e-3 * std::abs(score));
    EXPECT_EQ(page["signals"][shown[2].get<std::size_t>()], list[i]["signal"]);
    EXPECT_EQ(shown[3].size(), list[i]["because"].size());
  }
  EXPECT_EQ(user[1].size(), 6u);
  EXPECT_EQ(user[2].size(), 1u);
  EXPECT_EQ(user[4].size(), 1u);
}

TEST_F(ReportProgram, CountsHitsByItemAndBySignalAsTheTestDid) {
  ASSERT_EQ(report().code, 0);
  const json page = data_of_page();
  const auto hits_of = [&](const std::string& run) {
    const json target = json::parse(read_text(folder_.path(run + "/result.json")))["target"];
    return target["pooled_HR@10"].get<double>() * target["positives"].get<double>();
  };

  for (const json& shares : page["item_shares"]) {
    double places = 0, found = 0;
    for (const json& share : shares["recommended"]) places += share.get<double>();
    for (const json& count : shares["found"]) found += count.get<double>();
    EXPECT_NEAR(places, 1, 1e-9);
    EXPECT_NEAR(found, hits_of(fs::path(shares["run"].get<std::string>()).filename()), 1e-6);
  }
  ASSERT_EQ(page["hits"].size(), 1u);
  double by_signal = 0;
  for (const json& hits : page["hits"][0]["hits"]) by_signal += hits[1].get<double>();
  EXPECT_NEAR(by_signal, hits_of("default"), 1e-6);
}

TEST_F(ReportProgram, TextOfTheDataCannotLeaveItsPlace) {
  ASSERT_EQ(report().code, 0);
  const std::string text = read_text(page());

  EXPECT_EQ(text.find(kScript), std::string::npos);
  EXPECT_NE(text.find("\\u003c/script\\u003e"), std::string::npos);
}

TEST_F(ReportProgram, LoadsNothing) {
  ASSERT_EQ(report().code, 0);
  const std::string text = read_text(page());

  EXPECT_NE(text.find("default-src 'none'"), std::string::npos);
  EXPECT_FALSE(std::regex_search(text, std::regex("(src|href)=\"(https?:)?//")));
  EXPECT_EQ(text.find("@import"), std::string::npos);
}

TEST_F(ReportProgram, ReplacesItsOwnPageAndNoOtherFile) {
  ASSERT_EQ(report().code, 0);
  EXPECT_EQ(report().code, 0);
  write_text(page(), "mine");

  const Outcome refused = report();

  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  EXPECT_EQ(read_text(page()), "mine");
  EXPECT_EQ(report("--force").code, 0);
}

TEST_F(ReportProgram, DrawsTheSameUsersWhereThereAreMore) {
  ASSERT_EQ(report("--users 5 --top 3").code, 0);
  const json first = data_of_page();
  ASSERT_EQ(report("--users 5 --top 3 --threads 1").code, 0);

  EXPECT_EQ(first, data_of_page());
  EXPECT_EQ(first["users"].size(), 5u);
  EXPECT_EQ(first["users_to_choose_from"], 24);
  EXPECT_EQ(first["users"][0][3][0].size(), 3u);
}

// Runs of a small network besides.
class ReportOfNetworks : public SmallRuns {
 protected:
  std::string page() const { return path("report.html"); }
  Outcome report(const std::string& runs) const {
    return run_program("report " + runs + " --out " + page());
  }
};

TEST_F(ReportOfNetworks, ShowsWhatTrainingDidToTheEmbeddingsOfBothDomains) {
  ASSERT_EQ(train("cfaa", "--set train.seed=7").code, 0);
  const Outcome outcome = report(path("cfaa"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json page = data_of(this->page());

  ASSERT_EQ(page["samples"].size(), 2u);
  EXPECT_EQ(page["samples"][0]["members"].size(), 48u);
  const json& user = page["samples"][0]["members"][0];  // [id, title, words, sentence]
  EXPECT_EQ(user[0], "u100");
  EXPECT_EQ(user[3], "strings maker1");
  EXPECT_EQ(page["maps"][1]["points"].size(), 2 * 32u);
  for (const json& curve : page["curves"]) EXPECT_EQ(curve["seed"], 7);

  const json discrepancy = json::parse(run_program("discrepancy --json " + path("cfaa")).out);
  EXPECT_EQ(page["gaps"][1]["after"][0], discrepancy["items"]["proxy_distance"]["distance"]);
  EXPECT_EQ(page["gaps"][1]["before"].size(), 1u);
  ASSERT_EQ(page["figures"].size(), 4u);
  const json &before = page["figures"][2], &after = page["figures"][3];
  EXPECT_EQ(after["side"], "items");
  EXPECT_NEAR(after["horizontal"].get<double>(), discrepancy["items"]["horizontal"]["loss"], 1e-3);
  EXPECT_NE(before["attributes"], after["attributes"]);
  EXPECT_EQ(before["attributes"][0]["number"], after["attributes"][0]["number"]);
  for (const json& attribute : after["attributes"]) {
    const auto sum = [](const json& values) {
      double total = 0;
      for (const json& value : values) total += value.get<double>();
      return total;
    };
    EXPECT_NEAR(sum(attribute["share"][0]), 1, 1e-2);
    EXPECT_NEAR(sum(attribute["share"][1]), 1, 1e-2);
    EXPECT_NEAR(sum(attribute["plan"]), 1, 1e-2);
  }
  EXPECT_FALSE(after["edges"].empty());
}

// Steps too small to change a parameter leave everything as it was before them.
TEST_F(ReportOfNetworks, BeforeTrainingIsWhereTrainingStarted) {
  ASSERT_EQ(train("still",
                  "--set train.learning_rate=1e-30 --set train.embedding_rate=1e-30 "
                  "--set train.seed=3")
                .code,
            0);
  ASSERT_EQ(report(path("still")).code, 0);
  const json page = data_of(this->page());

  ASSERT_EQ(page["figures"].size(), 4u);
  for (const std::size_t side : {0, 1}) {
    EXPECT_EQ(page["gaps"][side]["before"], page["gaps"][side]["after"]);
    EXPECT_EQ(page["figures"][2 * side]["attributes"], page["figures"][2 * side + 1]["attributes"]);
    EXPECT_EQ(page["figures"][2 * side]["edges"], page["figures"][2 * side + 1]["edges"]);
  }
}

TEST_F(ReportOfNetworks, SweepsAreOfRunsThatDifferInOneWeight) {
  fs::create_directories(path("sweep"));
  for (const std::string weight : {"0.1", "2"}) {
    const std::string set = "--set losses.vertical.weight=" + weight + " --seeds 2";
    ASSERT_EQ(train("sweep/" + weight, set).code, 0);
  }
  fs::create_directories(path("none"));

  ASSERT_EQ(report(path("sweep/2") + " --sweep " + path("sweep")).code, 0);
  const json sweeps = data_of(page())["sweeps"];
  const Outcome refused = report(path("sweep/2") + " --sweep " + path("none"));

  ASSERT_EQ(sweeps.size(), 1u);
  EXPECT_EQ(sweeps[0]["loss"], "vertical");
  ASSERT_EQ(sweeps[0]["points"].size(), 2u);
  EXPECT_EQ(sweeps[0]["points"][1]["weight"], 2.0);
  EXPECT_EQ(sweeps[0]["points"][1]["test"].size(), 2u);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("holds no runs"), std::string::npos) << refused.err;
}

TEST(ReportPage, LeavesUsersOutRatherThanGrowBeyondItsLimit) {
  Report report;
  report.comparison.rows.push_back({"run", "full", {0}, {}, {}});
  for (int u = 0; u < 40; ++u) {
    ShownUser& user = report.users.emplace_back();
    user.user = "u" + std::to_string(u);
    user.history.push_back({"i", "", std::string(500'000, 'a')});
  }

  const std::string page = report_page(report);

  EXPECT_LE(page.size(), kMostPageBytes);
  EXPECT_NE(page.find("\"u9\""), std::string::npos);
  EXPECT_EQ(page.find("\"u39\""), std::string::npos);
}

// What tests/run/report_in_browser.py checks in the document that the script has made.
TEST_F(ReportOfNetworks, IsDrawnByABrowser) {
  if (std::system("command -v chromium >/dev/null && command -v python3 >/dev/null") != 0) {
    GTEST_SKIP() << "chromium is not installed; tools/setup test installs it";
  }
  ASSERT_EQ(train("sweep/1", "--set losses.vertical.weight=1 --seeds 2").code, 0);
  ASSERT_EQ(train("sweep/0", "--set losses.vertical.weight=0.1").code, 0);
  ASSERT_EQ(run_program("train " + path("data") + " --out " + path("default")).code, 0);
  write_text(path("data/target/item_titles.tsv"),
             std::string("item_id\ttitle\ni100\t") + kScript + "\n");
  ASSERT_EQ(report(path("default") + " " + path("sweep/1") + " --sweep " + path("sweep")).code, 0);

  const std::string command = "timeout 120 python3 " +
                              source_path("tests/run/report_in_browser.py") + " " + page() + " " +
                              path("profile") + " 2>" + path("problems");
  const int code = std::system(command.c_str());

  EXPECT_EQ(code, 0) << read_text(path("problems"));
}

}  // namespace
}  // namespace cfaa::test
