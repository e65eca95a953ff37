// `cfaa_gpu report`: what the page holds, what it never does, and, where a browser is installed,
// what it shows.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/program.h"
#include "tests/run/small_runs.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

constexpr const char* kScript = "</script><script>document.title='broken'</script>";

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
  json data_of_page() const {
    const std::string text = read_text(page()), start = "id=\"data\">";
    const std::size_t from = text.find(start) + start.size();
    return json::parse(text.substr(from, text.find("</script>", from) - from));
  }

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
  const json& user = page["users"][3];
  const std::size_t mine = page["listed"][0] == folder_.path("default") ? 0 : 1;
  const Outcome list = run_program("recommend --json " + folder_.path("default") + " --user " +
                                   user["user"].get<std::string>());
  EXPECT_EQ(user["lists"][mine], json::parse(list.out)["items"]);
  EXPECT_EQ(user["held_out"].size(), 1u);
  EXPECT_EQ(user["history"].size(), 6u);
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
  EXPECT_EQ(first["users"][0]["lists"][0].size(), 3u);
}

TEST_F(ReportProgram, MapsTheEmbeddingsOfATrainedModel) {
  const std::string settings =
      " --set 'model.inputs=[\"id\",\"history\"]' --set model.dim=6 --set 'model.layers=[8]'"
      " --set train.epochs=2 --set train.batch_size=32 --out ";
  ASSERT_EQ(run_program("train " + data() + settings + folder_.path("cfaa")).code, 0);
  const Outcome outcome = run_program("report " + folder_.path("cfaa") + " " + folder_.path("pop") +
                                      " --out " + page());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json page = data_of_page();

  ASSERT_EQ(page["maps"].size(), 2u);
  EXPECT_EQ(page["maps"][0]["side"], "users");
  EXPECT_EQ(page["maps"][0]["ids"].size(), 48u);
  EXPECT_EQ(page["maps"][1]["points"].size(), 2 * 32u);
  EXPECT_FALSE(page["curves"].empty());
}

// The document as the browser has it after the script ran.
TEST_F(ReportProgram, IsDrawnByABrowser) {
  if (std::system("command -v chromium >/dev/null") != 0) {
    GTEST_SKIP() << "chromium is not installed";
  }
  ASSERT_EQ(report().code, 0);
  const std::string shown = folder_.path("shown.html");
  const std::string command =
      "HOME=" + folder_.path("home") +
      " timeout 120 chromium --headless --no-sandbox --disable-gpu --dump-dom file://" + page() +
      " >" + shown + " 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string text = read_text(shown);

  for (const char* section : {"comparison", "groups", "signals", "lists"}) {
    EXPECT_NE(text.find(std::string("<section id=\"") + section), std::string::npos) << section;
  }
  EXPECT_NE(text.find("<title>cfaa_gpu report</title>"), std::string::npos) << "a title ran";
  EXPECT_EQ(text.find("NaN"), std::string::npos);
  EXPECT_EQ(text.find(">undefined"), std::string::npos);
}

}  // namespace
}  // namespace cfaa::test
