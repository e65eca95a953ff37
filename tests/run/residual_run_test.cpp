// A run whose model is the residual of signals, and what the other commands make of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/data/dataset.h"
#include "tests/run/small_runs.h"

namespace cfaa::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class ResidualRun : public SmallRuns {
 protected:
  // Two signals that say little, so that there is something left for the model.
  Outcome train(const std::string& out, const std::string& more = "") const {
    return run_program(
        command(out,
                "--set signals.residual=model --set 'signals.use=[\"popularity\",\"rp3beta\"]'"
                " --set model.scorer=dot --set 'model.layers=[]' --set train.epochs=40"
                " --set train.embedding_rate=0.05 --set train.embedding_decay=0"
                " --set train.learning_rate=0.01 --set train.checkpoint_every=10"
                " --set train.keep_checkpoints=100 " +
                    more));
  }
  std::string files(const std::string& run) const {
    return read_text(path(run + "/result.json")) + read_text(path(run + "/best.json")) +
           read_text(path(run + "/metrics.jsonl")) + read_text(path(run + "/signals.json")) +
           read_text(path(run + "/target_users.tsv"));
  }
};

TEST_F(ResidualRun, KeepsWhatValidationSaidOfEachShare) {
  const Outcome trained = train("run");

  ASSERT_EQ(trained.code, 0) << trained.err;
  const json fit = json::parse(read_text(path("run/signals.json")));
  ASSERT_EQ(fit["residual"]["tried"].size(), 4u);
  json taken = 0;
  double best = 0;
  for (const json& tried : fit["residual"]["tried"]) {
    const double ahead = tried["ahead_of_0"], error = tried["standard_error"];
    if (ahead <= error || ahead <= best) continue;
    taken = tried["beta"];
    best = ahead;
  }
  EXPECT_EQ(fit["residual"]["beta"], taken);
  EXPECT_EQ(fit["residual"]["tried"][0]["beta"], 0);
  const json compared = json::parse(run_program("compare --json " + path("run")).out);
  EXPECT_EQ(compared["rows"][0]["variant"], "signals+full");
}

TEST_F(ResidualRun, IsEvaluatedToTheResultOfTraining) {
  ASSERT_EQ(train("run").code, 0);
  const json result = json::parse(read_text(path("run/result.json")));

  for (const std::string domain : {"target", "source"}) {
    const Outcome found = run_program("evaluate " + path("run") + " --json --domain " + domain);
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_EQ(json::parse(found.out)["NDCG@10"], result[domain]["NDCG@10"]);
  }
}

TEST_F(ResidualRun, ResumedItEndsWithTheSameBits) {
  ASSERT_EQ(train("run").code, 0);
  const std::string expected = files("run");

  fs::remove(path("run/result.json"));
  ASSERT_EQ(train("run", "--from 20").code, 0);
  EXPECT_EQ(files("run"), expected);

  fs::remove(path("run/result.json"));
  fs::remove(path("run/signals.json"));  // killed before it was written
  ASSERT_EQ(train("run", "--from 10").code, 0);
  EXPECT_EQ(files("run"), expected);
}

TEST_F(ResidualRun, HasTheSameListsOnEveryNumberOfThreads) {
  ASSERT_EQ(train("run").code, 0);

  const auto lists = [&](const std::string& threads) {
    const std::string out = path("lists-" + threads);
    const Outcome all =
        run_program("recommend " + path("run") + " --all --out " + out + " --threads " + threads);
    EXPECT_EQ(all.code, 0) << all.err;
    return read_text(out);
  };
  EXPECT_EQ(lists("1"), lists("3"));
}

TEST_F(ResidualRun, IsExportedWithTheModelsShareOfTheScore) {
  ASSERT_EQ(train("run").code, 0);
  const json beta = json::parse(read_text(path("run/signals.json")))["residual"]["beta"];
  ASSERT_GT(beta, 0) << "there is something that the signals do not know";

  const Outcome exported = run_program("export " + path("run") + " --out " + path("out"));

  ASSERT_EQ(exported.code, 0) << exported.err;
  const auto file = [&](const std::string& name) {
    return NpyFile(path("out/target_" + name + ".npy"));
  };
  const auto users = file("users").read<float>(), items = file("items").read<float>();
  const json first = json::parse(
      run_program("recommend " + path("run") + " --user u100 --top 1 --json").out)["items"][0];
  const int64_t item =
      load_domain(path("data"), "target").items.find(first["item"].get<std::string>());
  double score = exported_score(path("out"), item);
  for (std::size_t q = 0; q < 6; ++q) {
    score += beta.get<double>() * users[q] * items[static_cast<std::size_t>(item) * 6 + q];
  }
  EXPECT_NEAR(score, first["score"].get<double>(), 1e-4);
  const std::string said = read_text(path("out/scorer.json"));
  EXPECT_THAT(said, HasSubstr("+ " + beta.dump() + " (<users[u], items[i]>)"));
}

TEST_F(ResidualRun, IsOneOfSignalsForRecommendAndOfEmbeddingsForDiscrepancy) {
  ASSERT_EQ(train("run").code, 0);

  const Outcome listed = run_program("recommend " + path("run") + " --user u100 --top 2 --json");
  const Outcome distance = run_program("discrepancy " + path("run"));

  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_NE(json::parse(listed.out)["items"][0]["signal"], "");
  EXPECT_EQ(distance.code, 0) << distance.err;
}

TEST_F(ResidualRun, TracesItsOffsets) {
  const Outcome traced = train("run", "--set train.epochs=1 --trace " + path("trace"));

  ASSERT_EQ(traced.code, 0) << traced.err;
  EXPECT_THAT(read_text(path("trace/step-00000000.safetensors")), HasSubstr("batch.target.offset"));
}

}  // namespace
}  // namespace cfaa::test
