// `train data/` without a configuration weighs signals; the other commands know such a run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "host/data/review_text.h"
#include "host/device/make_context.h"
#include "host/run/signal_model.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// 24 users in two groups, each of which likes half of the 16 items of a domain and writes in words
// of its own about it.
void write_domain(const TemporaryFolder& folder, const std::string& domain) {
  const std::string at = "data/" + domain + "/";
  std::filesystem::create_directories(folder.path(at));
  const std::string header =
      "user_id:token\titem_id:token\trating:float\tlabel:float\ttimestamp:float\n";
  std::string train = header, valid = header, test = header;
  std::vector<std::string> texts;
  std::string users = "index\tuser_id\ttraining_interactions\n";
  std::string items = "index\titem_id\ttraining_interactions\n";
  for (int i = 0; i < 16; ++i) {
    items += std::to_string(i) + "\ti" + std::to_string(100 + i) + "\t9\n";
  }
  for (int u = 0; u < 24; ++u) {
    const std::string user = "u" + std::to_string(100 + u);
    users += std::to_string(u) + "\t" + user + "\t6\n";
    for (int i = 0; i < 8; ++i) {
      std::string& rows = i == u / 2 % 8 ? test : i == (u / 2 + 3) % 8 ? valid : train;
      rows += user + "\ti" + std::to_string(100 + u % 2 * 8 + i) + "\t5\t1\t0\n";
      if (&rows != &train) continue;
      texts.push_back(std::string(u % 2 == 0 ? "strings" : "drums") + " maker" +
                      std::to_string(i % 3));
    }
  }
  write_text(folder.path(at + "users.tsv"), users);
  write_text(folder.path(at + "items.tsv"), items);
  write_text(folder.path(at + domain + ".train.inter"), train);
  write_text(folder.path(at + domain + ".valid.inter"), valid);
  write_text(folder.path(at + domain + ".test.inter"), test);
  OutputFile text(folder.path(at + domain + ".train.text"));
  write_review_text(text, {texts.begin(), texts.end()});
  text.close();
}

class SignalRun : public testing::Test {
 protected:
  SignalRun() {
    write_domain(folder_, "source");
    write_domain(folder_, "target");
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  Outcome train(const std::string& out, const std::string& more = "") const {
    return run_program("train " + path("data") + " --out " + path(out) + " --json " + more);
  }

  TemporaryFolder folder_;
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

TEST_F(SignalRun, HasNoEmbeddingsToExportOrCompare) {
  ASSERT_EQ(train("run").code, 0);

  const Outcome exported = run_program("export " + path("run") + " --out " + path("out"));

  EXPECT_EQ(exported.code, 2);
  EXPECT_THAT(exported.err, HasSubstr("is a run of signals, which has no embeddings"));
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
  for (float& label : data.target.train.label) label = 0;
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

}  // namespace
}  // namespace cfaa::test
