// `train data/` without a configuration weighs signals; the other commands know such a run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "host/device/make_context.h"
#include "host/io/npy.h"
#include "host/run/signal_model.h"
#include "tests/on_device.h"
#include "tests/run/small_runs.h"

namespace cfaa::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class SignalRun : public SmallRuns {
 protected:
  Outcome train(const std::string& out, const std::string& more = "") const {
    return run_program("train " + path("data") + " --out " + path(out) + " --json " + more);
  }
};

TEST_F(SignalRun, IsWhatTrainingWithoutAConfigurationMakes) {
  const Outcome trained = train("run");

  ASSERT_EQ(trained.code, 0) << trained.err;
  const json result = json::parse(trained.out),
             fit = json::parse(read_text(path("run/signals.json")));
  EXPECT_GT(result["target"]["NDCG@10"], 0.9) << "each user's held-out item is of its group";
  EXPECT_GT(result["source"]["NDCG@10"], 0.9);
  EXPECT_GT(result["valid"], 0.5);
  EXPECT_EQ(fit["tried"].size(), 5u);
  EXPECT_EQ(fit["weights"]["target"].size(), 8u) << "all but the encoder's: there are no vectors";
  EXPECT_THAT(trained.err, HasSubstr("without the signal encoder"));
}

TEST_F(SignalRun, GivesWayToCfaaWhereASettingSpeaksOfIt) {
  const Outcome trained = train("run", "--set 'model.inputs=[\"id\"]' --set train.epochs=1");

  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err,
              HasSubstr("training CFAA by its defaults, because of --set model.inputs"));
  EXPECT_FALSE(std::filesystem::exists(path("run/signals.json")));
}

TEST_F(SignalRun, IsNamedForWhatItIsInATable) {
  ASSERT_EQ(train("run").code, 0);

  const Outcome table = run_program("compare --json " + path("run"));

  EXPECT_EQ(json::parse(table.out)["rows"][0]["variant"], "signals") << table.err;
}

TEST_F(SignalRun, HasTheSameBytesOnEveryNumberOfThreads) {
  ASSERT_EQ(train("one", "--threads 1").code, 0);
  ASSERT_EQ(train("four", "--threads 4").code, 0);

  EXPECT_EQ(read_text(path("one/signals.json")), read_text(path("four/signals.json")));
  EXPECT_EQ(read_text(path("one/target_users.tsv")), read_text(path("four/target_users.tsv")));
}

TEST_F(SignalRun, IsEvaluatedToTheResultOfTraining) {
  ASSERT_EQ(train("run").code, 0);
  const json result = json::parse(read_text(path("run/result.json")));

  const Outcome target = run_program("evaluate " + path("run") + " --json");
  const Outcome source = run_program("evaluate " + path("run") + " --domain source --json");

  ASSERT_EQ(target.code, 0) << target.err;
  EXPECT_EQ(json::parse(target.out)["NDCG@10"], result["target"]["NDCG@10"]);
  EXPECT_EQ(json::parse(source.out)["NDCG@10"], result["source"]["NDCG@10"]);
}

TEST_F(SignalRun, RecommendsWithTheSignalAndTheItemsBehindIt) {
  ASSERT_EQ(train("run").code, 0);

  const Outcome listed = run_program("recommend " + path("run") + " --user u100 --top 2 --json");
  const Outcome shown = run_program("recommend " + path("run") + " --user u100 --top 2");

  ASSERT_EQ(listed.code, 0) << listed.err;
  const json first = json::parse(listed.out)["items"][0];
  EXPECT_EQ(first["item"], "i100");
  EXPECT_NE(first["signal"], "");
  EXPECT_FALSE(first["because"].empty());
  EXPECT_THAT(shown.out, HasSubstr(first["signal"].get<std::string>()));
}

TEST_F(SignalRun, ExportsSparseMatricesWhoseProductsAreTheScores) {
  ASSERT_EQ(train("run").code, 0);

  const Outcome exported = run_program("export " + path("run") + " --out " + path("out"));
  const Outcome as_vectors =
      run_program("export " + path("run") + " --as faiss --out " + path("vectors"));

  ASSERT_EQ(exported.code, 0) << exported.err;
  const auto file = [&](const std::string& name) {
    return NpyFile(path("out/target_" + name + ".npy"));
  };
  const auto users = file("user_factors").read<float>(), items = file("item_factors").read<float>();
  // The first user's score of the item that is recommended first.
  const json first = json::parse(
      run_program("recommend " + path("run") + " --user u100 --top 1 --json").out)["items"][0];
  const Domain domain = load_domain(path("data"), "target");
  const int64_t item = domain.items.find(first["item"].get<std::string>());
  double score = exported_score(path("out"), item);
  const std::size_t dim = users.size() / static_cast<std::size_t>(domain.users.size());
  for (std::size_t q = 0; q < dim; ++q) {
    score += double{users[q]} * items[static_cast<std::size_t>(item) * dim + q];
  }
  EXPECT_NEAR(score, first["score"].get<double>(), 1e-4);
  EXPECT_EQ(as_vectors.code, 2);
  EXPECT_THAT(as_vectors.err, HasSubstr("export without --as faiss"));
}

TEST_F(SignalRun, UsesTheSignalsThatItIsTold) {
  const Outcome trained =
      train("run", "--set 'signals.use=[\"popularity\",\"ease\"]' --set signals.prior=none");
  const Outcome wrong = train("other", "--set 'signals.use=[\"easy\"]'");

  ASSERT_EQ(trained.code, 0) << trained.err;
  const json fit = json::parse(read_text(path("run/signals.json")));
  EXPECT_EQ(fit["weights"]["target"].size(), 2u);
  EXPECT_EQ(fit["weights"]["target"][1]["signal"], "ease");
  EXPECT_EQ(fit["tried"].size(), 1u);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("signals.use"));
}

TEST_F(SignalRun, HasNoStepsToTraceOrToResumeFrom) {
  const Outcome traced = train("run", "--trace " + path("trace"));

  EXPECT_EQ(traced.code, 2);
  EXPECT_THAT(traced.err, HasSubstr("--trace and --from are for a run of CFAA"));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(SignalRun, RefusesADirectoryOfOtherSettings) {
  ASSERT_EQ(train("run").code, 0);

  const Outcome other = train("run", "--set signals.folds=3");

  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("signals.folds"));
}

TEST_F(SignalRun, LearnsFromTheSourceAloneWhereTheTargetHasNoLabels) {
  const auto context = make_context("cpu", {2, 0});
  Dataset data = load_dataset(path("data"));
  for (float& label : data.target.train.label) label = kNoLabel;
  const ReviewedData reviewed(*context, data);

  const SignalFit fit = fit_signals(*context, reviewed, default_signals());

  EXPECT_TRUE(std::isinf(fit.prior));
  ASSERT_EQ(fit.weights[kTarget].size(), fit.weights[kSource].size());
  const SignalModel model(*context, reviewed, kTarget, default_signals(), fit.weights[kTarget]);
  const std::vector<int32_t> of_group = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<int32_t> others = {8, 9, 10, 11, 12, 13, 14, 15};
  std::vector<double> own(8), foreign(8);
  model.scorer()->score(0, of_group, own.data());
  model.scorer()->score(0, others, foreign.data());
  EXPECT_GT(std::accumulate(own.begin(), own.end(), 0.0),
            std::accumulate(foreign.begin(), foreign.end(), 0.0))
      << "the words that user 0 wrote are those of its group";
}

TEST_F(SignalRun, TakesAnotherPriorThanAHundredEdgesOnlyWhereItIsAheadByTwoStandardErrors) {
  ASSERT_EQ(train("run").code, 0);
  const json fit = json::parse(read_text(path("run/signals.json")));

  json taken = 100;
  double best = 0;
  for (const json& tried : fit["tried"]) {
    if (tried["prior"] == 100) best = std::max(best, tried["valid_ndcg"].get<double>());
  }
  for (const json& tried : fit["tried"]) {
    const double ahead = tried["ahead_of_100"], error = tried["standard_error"];
    if (ahead <= 2 * error || tried["valid_ndcg"] <= best) continue;
    taken = tried["prior"];
    best = tried["valid_ndcg"];
  }
  EXPECT_GT(best, 0);
  EXPECT_EQ(fit["prior"], taken);
}

TEST_F(SignalRun, KeepsItsWeightsWhereTheyRankBetterThanPopularity) {
  ASSERT_EQ(train("run").code, 0);

  const json fit = json::parse(read_text(path("run/signals.json")));

  EXPECT_GT(fit["beside_popularity"]["ahead"], fit["beside_popularity"]["standard_error"]);
  EXPECT_FALSE(fit["beside_popularity"]["popularity_taken"]);
}

TEST_F(SignalRun, IsPopularityAloneWhereNothingElseHelps) {
  const auto context = make_context("cpu", {2, 0});
  Dataset data = load_dataset(path("data"));
  // Whoever likes anything likes the same item.
  for (SplitRows* rows : {&data.target.train, &data.target.valid}) {
    for (std::size_t r = 0; r < rows->label.size(); ++r) rows->label[r] = rows->item[r] == 0;
  }
  const ReviewedData reviewed(*context, data);
  SignalsOptions options = default_signals();
  options.prior = SignalPrior::none;

  const SignalFit fit = fit_signals(*context, reviewed, options);

  ASSERT_TRUE(fit.beside_popularity);
  EXPECT_TRUE(fit.beside_popularity->taken);
  for (const SignalWeight& w : fit.weights[kTarget]) {
    EXPECT_EQ(w.weight, w.name == SignalName::popularity ? 1 : 0);
  }
}

TEST_F(SignalRun, CountsTheSourceAsAHundredEdgesWhereThereIsNothingToChooseBy) {
  const auto context = make_context("cpu", {2, 0});
  Dataset data = load_dataset(path("data"));
  for (float& label : data.target.valid.label) label = kNoLabel;
  const ReviewedData reviewed(*context, data);

  EXPECT_EQ(fit_signals(*context, reviewed, default_signals()).prior, 100);
}

class SignalRunOnDevices : public SmallRuns, public testing::WithParamInterface<std::string> {};
CFAA_TEST_ON_DEVICES(SignalRunOnDevices);

TEST_P(SignalRunOnDevices, HasTheWeightsAndScoresOfTheCpu) {
  const Dataset data = load_dataset(path("data"));
  const std::vector<int32_t> items = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::vector<SignalWeight> weights[2];
  std::vector<double> scores[2];
  for (const int which : {0, 1}) {
    const auto context = make_context(which == 0 ? "cpu" : GetParam(), {2, 0});
    const ReviewedData reviewed(*context, data);
    weights[which] = fit_signals(*context, reviewed, default_signals()).weights[kTarget];
    const SignalModel model(*context, reviewed, kTarget, default_signals(), weights[which]);
    scores[which].resize(items.size());
    model.scorer()->score(5, items, scores[which].data());
  }

  ASSERT_EQ(weights[0].size(), weights[1].size());
  double most = 0;
  for (std::size_t s = 0; s < weights[0].size(); ++s) {
    EXPECT_EQ(weights[0][s].name, weights[1][s].name);
    EXPECT_NEAR(weights[0][s].weight, weights[1][s].weight, 1e-3) << name_of(weights[0][s].name);
    most = std::max(most, weights[0][s].weight);
  }
  EXPECT_GT(most, 0.1);
  for (std::size_t i = 0; i < items.size(); ++i) EXPECT_NEAR(scores[0][i], scores[1][i], 1e-2);
}

}  // namespace
}  // namespace cfaa::test
