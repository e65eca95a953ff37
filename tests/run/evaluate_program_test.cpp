// `cfaa_gpu evaluate` as a user runs it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/io/npy.h"
#include "tests/compare.h"
#include "tests/on_device.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

// Three users and four items of one domain. Test positives: a -> s, c -> q; b has none.
class EvaluateProgram : public testing::Test {
 protected:
  EvaluateProgram() {
    const std::string header =
        "user_id:token\titem_id:token\trating:float\tlabel:float\ttimestamp:float\n";
    for (const std::string domain : {"source", "target"}) {
      std::filesystem::create_directories(folder_.path("data/" + domain));
      const std::string at = "data/" + domain + "/";
      write_text(folder_.path(at + "users.tsv"),
                 "index\tuser_id\ttraining_interactions\n0\ta\t2\n1\tb\t1\n2\tc\t0\n");
      write_text(folder_.path(at + "items.tsv"),
                 "index\titem_id\ttraining_interactions\n0\tp\t1\n1\tq\t2\n2\tr\t0\n3\ts\t0\n");
      write_text(folder_.path(at + domain + ".train.inter"),
                 header + "a\tp\t5\t1\t0\na\tq\t2\t0\t0\nb\tq\t5\t1\t0\n");
      write_text(folder_.path(at + domain + ".valid.inter"), header + "a\tr\t5\t1\t0\n");
      write_text(folder_.path(at + domain + ".test.inter"),
                 header + "a\ts\t5\t1\t0\nb\tp\t1\t0\t0\nc\tq\t4\t1\t0\n");
    }
    users_ = {1, 0, 0, 1, 1, 1};
    items_ = {3, 0, 1, 2, 3, 0, -2, 4};
    save();
  }

  void save() {
    write_npy(folder_.path("U.npy"), {3, 2}, users_.data());
    write_npy(folder_.path("V.npy"), {4, 2}, items_.data());
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string embeddings() const {
    return " --user-embeddings " + path("U.npy") + " --item-embeddings " + path("V.npy");
  }
  Outcome evaluate(const std::string& flags) const {
    return run_program("evaluate " + path("data") + flags);
  }
  // Exit 2, nothing on stdout, one line that contains `part`.
  static void expect_refused(const Outcome& outcome, const std::string& part) {
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  TemporaryFolder folder_;
  std::vector<float> users_, items_;
};

TEST_F(EvaluateProgram, ReportsTheMetricsByTheirNames) {
  const Outcome outcome = evaluate(embeddings() + " --k 1,3 --json");

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  // a has s alone left and it is wanted; c ranks 3 3 3 2 as p q r s, and wants q.
  EXPECT_TRUE(close(report["HR@1"].get<double>(), 0.5, 1e-15));
  EXPECT_TRUE(close(report["HR@3"].get<double>(), 1.0, 1e-15));
  EXPECT_TRUE(close(report["MRR@3"].get<double>(), 0.75, 1e-15));
  EXPECT_TRUE(close(report["Recall@3"].get<double>(), 1.0, 1e-15));
  EXPECT_TRUE(close(report["NDCG@3"].get<double>(), (1 + 1 / std::log2(3.0)) / 2, 1e-15));
  EXPECT_TRUE(close(report["Precision@3"].get<double>(), 1.0 / 3, 1e-15));
  EXPECT_TRUE(close(report["pooled_HR@1"].get<double>(), 0.5, 1e-15));
  EXPECT_EQ(report["skipped_users"], 1);
  EXPECT_EQ(report["evaluated_users"], 2);
  EXPECT_EQ(report["masked"], json::array({"train", "valid"}));
  EXPECT_EQ(report["cold_users"]["users"], 1);
  EXPECT_EQ(report["cold_items"]["positives"], 1);
  EXPECT_EQ(report["interval"]["HR@3"], json::array({1.0, 1.0}));
}

TEST_F(EvaluateProgram, PrintsATableForPeople) {
  const Outcome outcome = evaluate(embeddings());

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("2 of 3 users ranked over 4 items"), std::string::npos);
  EXPECT_NE(outcome.out.find("NDCG"), std::string::npos);
  EXPECT_NE(outcome.out.find("cold items"), std::string::npos);
}

TEST_F(EvaluateProgram, GivesTheSameForTheScoreMatrix) {
  std::vector<double> scores;
  for (int u = 0; u < 3; ++u) {
    for (int i = 0; i < 4; ++i) {
      scores.push_back(users_[2 * u] * items_[2 * i] + users_[2 * u + 1] * items_[2 * i + 1]);
    }
  }
  write_npy(path("S.npy"), {3, 4}, scores.data());
  const std::string files = " --lists " + path("lists.tsv") + " --per-user " + path("users.tsv");
  ASSERT_EQ(evaluate(embeddings() + files).code, 0);
  const std::string lists = read_text(path("lists.tsv")), users = read_text(path("users.tsv"));

  const Outcome outcome = evaluate(" --scores " + path("S.npy") + files);

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_text(path("lists.tsv")), lists);
  EXPECT_EQ(read_text(path("users.tsv")), users);
  EXPECT_EQ(lists,
            "user_id\trank\titem_id\tscore\thit\na\t1\ts\t-2\t1\nc\t1\tp\t3\t0\nc\t2\tq\t3\t1\n"
            "c\t3\tr\t3\t0\nc\t4\ts\t2\t0\n");
  EXPECT_EQ(users.substr(0, 28), "user_id\tpositives\tHR@5\tRecal");
}

TEST_F(EvaluateProgram, GivesTheSameOnEveryDeviceAndForEveryNumberOfThreads) {
  std::string expected;
  for (const std::string& device : devices()) {
    for (const char* threads : {"1", "2", "5"}) {
      const Outcome outcome =
          evaluate(embeddings() + " --json --device " + device + " --threads " + threads);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      json report = json::parse(outcome.out);
      report.erase("seconds");
      report.erase("device");
      if (expected.empty()) expected = report.dump();
      EXPECT_EQ(report.dump(), expected);
    }
  }
}

TEST_F(EvaluateProgram, RemindsThatSampledMetricsAreBiased) {
  const Outcome outcome = evaluate(embeddings() + " --candidates 2 --json");

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("biased"), std::string::npos);
  EXPECT_EQ(json::parse(outcome.out)["protocol"], "sampled");
}

TEST_F(EvaluateProgram, RefusesRowsThatDoNotMatchTheIds) {
  write_npy(path("U.npy"), {2, 3}, users_.data());

  expect_refused(evaluate(embeddings()), "U.npy: has 2 rows where ");
}

TEST_F(EvaluateProgram, RefusesWholeNumbers) {
  const std::vector<int32_t> whole(6, 1);
  write_npy(path("U.npy"), {3, 2}, whole.data());

  expect_refused(evaluate(embeddings()), "U.npy: holds int32; ");
}

TEST_F(EvaluateProgram, RefusesDifferentNumbersOfAttributes) {
  const std::vector<float> wide(12, 1);
  write_npy(path("V.npy"), {4, 3}, wide.data());

  expect_refused(evaluate(embeddings()), "has 2 columns and ");
}

TEST_F(EvaluateProgram, RefusesNanInEmbeddingsNamingTheUser) {
  users_[3] = NAN;
  save();

  expect_refused(evaluate(embeddings()), "U.npy: row 1 (user 'b'), column 1 is NaN");
}

TEST_F(EvaluateProgram, RefusesNanScoresNamingUserAndItem) {
  std::vector<float> scores(12, 0);
  scores[2 * 4 + 3] = NAN;
  write_npy(path("S.npy"), {3, 4}, scores.data());

  expect_refused(evaluate(" --scores " + path("S.npy")),
                 "the score of user 'c' (row 2) and item 's' (column 3) is NaN");
}

TEST_F(EvaluateProgram, RefusesNothingToRankAndTooMuch) {
  expect_refused(evaluate(""), "give either --user-embeddings and --item-embeddings, or --scores");
  expect_refused(evaluate(embeddings() + " --scores " + path("U.npy")), "give either");
}

TEST_F(EvaluateProgram, RefusesBadFlagsAndFolders) {
  expect_refused(evaluate(embeddings() + " --k 5,0"), "--k");
  expect_refused(evaluate(embeddings() + " --mask some"), "--mask");
  expect_refused(evaluate(embeddings() + " --candidates -3"), "--candidates");
  expect_refused(run_program("evaluate " + path("nowhere") + embeddings()), "nowhere");
}

}  // namespace
}  // namespace cfaa::test
