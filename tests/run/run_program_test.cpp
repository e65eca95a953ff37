// A run, once trained, is known by its directory: evaluate, discrepancy and compare take it.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/io/utf8.h"
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

TEST_F(RunProgram, EarlyStoppingIsAnnouncedWithItsReason) {
  const Outcome outcome = run_program("train " + path("data") + " --out " + path("early") +
                                      " --set 'model.inputs=[\"id\",\"history\"]' --set model.dim=6"
                                      " --set 'model.layers=[8]' --set train.epochs=200"
                                      " --set train.batch_size=32 --set train.patience=1"
                                      " --set train.patience_steps=0 --set train.min_steps=0"
                                      " --json");

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_NE(outcome.err.find("NDCG@10 did not improve in 1 validation, "), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("at step " + result["best_step"].dump() + "\n"), std::string::npos)
      << outcome.err;
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
  const json table = json::parse(outcome.out);
  json rows;
  for (const json& row : table["rows"]) rows[row["variant"]] = row["metrics"];
  const json found = rows["full"]["NDCG@10"];
  EXPECT_EQ(found["by_seed"]["pairs"], 1);
  EXPECT_EQ(found["by_user"]["pairs"], 24);
  EXPECT_TRUE(close(
      found["by_user"]["difference"].get<double>(),
      found["mean"].get<double>() - rows["popularity"]["NDCG@10"]["mean"].get<double>(), 1e-9));
}

TEST_F(RunProgram, ScoresOfAnyModelAreARowOfCompare) {
  ASSERT_EQ(trained_.code, 0) << trained_.err;
  ASSERT_EQ(run_program("export " + path("run") + " --out " + path("vectors")).code, 0);
  const std::string scores = "evaluate " + path("data") + " --user-embeddings " +
                             path("vectors/target_users.npy") + " --item-embeddings " +
                             path("vectors/target_items.npy") + " --name mine --out ";

  const Outcome kept = run_program(scores + path("mine"));
  const Outcome onto_a_run = run_program(scores + path("run"));
  const Outcome compared = run_program("compare --json " + path("mine") + " " + path("run"));

  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_EQ(onto_a_run.code, 2);
  EXPECT_NE(onto_a_run.err.find("is a run"), std::string::npos) << onto_a_run.err;
  ASSERT_EQ(compared.code, 0) << compared.err;
  const json table = json::parse(compared.out);
  EXPECT_EQ(table["reference"], path("mine"));
  for (const json& row : table["rows"]) {
    EXPECT_EQ(row["validation"]["metric"], "NDCG@10") << row;
    if (row["variant"] == "mine") continue;
    EXPECT_EQ(row["metrics"]["NDCG@10"]["by_user"]["pairs"], 24) << row;
  }
}

TEST_F(RunProgram, ABaselineIsRecommendedFromEvaluatedAndExported) {
  for (const std::string name : {"popularity", "itemknn", "mf"}) {
    ASSERT_EQ(run_program("baseline " + path("data") + " " + name + " --out " + path(name)).code,
              0);

    const Outcome list = run_program("recommend " + path(name) + " --json --user u100");
    const Outcome again = run_program("evaluate " + path(name) + " --json");

    ASSERT_EQ(list.code, 0) << list.err;
    EXPECT_EQ(json::parse(list.out)["items"].size(), 9u) << "16 items, of which 7 are known";
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(json::parse(again.out)["NDCG@10"],
              json::parse(read_text(path(name + "/result.json")))["target"]["NDCG@10"])
        << name;
  }

  const Outcome vectors =
      run_program("export " + path("mf") + " --as faiss --out " + path("vectors"));
  const Outcome none = run_program("export " + path("itemknn") + " --out " + path("none"));
  const Outcome source = run_program("recommend " + path("mf") + " --user u100 --domain source");

  EXPECT_EQ(vectors.code, 0) << vectors.err;
  EXPECT_TRUE(std::filesystem::exists(path("vectors/target_items.npy")));
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("has no embeddings"), std::string::npos) << none.err;
  EXPECT_EQ(source.code, 2);
  EXPECT_NE(source.err.find("baseline of the target domain"), std::string::npos) << source.err;
}

TEST_F(RunProgram, AListShowsTitlesAndWhatUsersWrote) {
  ASSERT_EQ(trained_.code, 0) << trained_.err;
  std::string titles = "item_id\ttitle\n";
  for (int i = 0; i < 16; ++i) titles += "i" + std::to_string(100 + i) + "\tKind of Blue\n";
  write_text(path("data/target/item_titles.tsv"), titles);

  const Outcome shown = run_program("recommend " + path("run") + " --user u100 --top 3");
  const json list =
      json::parse(run_program("recommend " + path("run") + " --user u100 --json").out);

  EXPECT_NE(shown.out.find(" maker"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("Kind of Blue"), std::string::npos) << shown.out;
  EXPECT_EQ(list["items"][0]["title"], "Kind of Blue");
  EXPECT_NE(list["items"][0]["review"].get<std::string>().find(" maker"), std::string::npos);
  EXPECT_EQ(list["items"][0]["own_words"].size(), list["items"][0]["because"].size());
}

TEST_F(RunProgram, ATitleLosesItsControlsAndIsCutBetweenCharacters) {
  ASSERT_EQ(trained_.code, 0) << trained_.err;
  std::string titles = "item_id\ttitle\n", accents;
  for (int i = 0; i < 200; ++i) accents += "é";
  for (int i = 0; i < 16; ++i) {
    titles += "i" + std::to_string(100 + i) + "\t\x1B[2J\xC2\x9B" + "31m" + accents + "\n";
  }
  write_text(path("data/target/item_titles.tsv"), titles);

  const Outcome shown = run_program("recommend " + path("run") + " --user u100 --top 3");
  const Outcome machine = run_program("recommend " + path("run") + " --user u100 --json");

  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("[2J 31mé"), std::string::npos) << shown.out;
  EXPECT_TRUE(is_utf8(shown.out)) << shown.out;
  for (const std::string& out : {shown.out, machine.out}) {
    EXPECT_EQ(out.find('\x1B'), std::string::npos);
    EXPECT_EQ(out.find("\xC2\x9B"), std::string::npos);
  }
}

TEST_F(RunProgram, AUserOfTheOtherDomainIsToldHowToAsk) {
  ASSERT_EQ(trained_.code, 0) << trained_.err;
  const std::string at = path("data/source/users.tsv");
  std::string text = read_text(at);
  const std::size_t last = text.rfind("u123");
  write_text(at, text.replace(last, 4, "v999"));
  for (const char* split : {"train", "valid", "test"}) {
    const std::string rows = path(std::string("data/source/source.") + split + ".inter");
    std::string lines = read_text(rows);
    for (std::size_t found = 0; (found = lines.find("u123", found)) != std::string::npos;) {
      lines.replace(found, 4, "v999");
    }
    write_text(rows, lines);
  }
  ASSERT_EQ(train("other").code, 0);

  const Outcome wrong = run_program("recommend " + path("other") + " --user v999");
  const Outcome right = run_program("recommend " + path("other") + " --user v999 --domain source");

  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("give --domain source"), std::string::npos) << wrong.err;
  EXPECT_EQ(right.code, 0) << right.err;
}

}  // namespace
}  // namespace cfaa::test
