// What must not be lost or mixed up: a run's files, whose they are, and what they belong to.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include "host/run/directory/run_lock.h"
#include "tests/paths.h"
#include "tests/run/small_runs.h"

namespace cfaa::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RunSafety : public SmallRuns {
 protected:
  static void expect_refusal(const Outcome& outcome, const std::string& words) {
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  }
  std::set<std::string> entries(const std::string& folder) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path(folder))) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
};

TEST_F(RunSafety, ASecondTrainingSaysWhoHoldsTheRun) {
  ASSERT_EQ(train("run").code, 0);
  const std::string before = read_text(path("run/run.json"));
  const RunLock lock(path("run"));

  const Outcome second = train("run", "--fresh --set model.dim=7");

  expect_refusal(second, "process " + std::to_string(::getpid()) + " is training this run");
  EXPECT_EQ(read_text(path("run/run.json")), before);
}

TEST_F(RunSafety, TheLockOfAKilledTrainingDoesNotHold) {
  ASSERT_EQ(train("run").code, 0);
  write_text(path("run/run.lock"), "1\n");

  EXPECT_EQ(train("run").code, 0);
  EXPECT_FALSE(fs::exists(path("run/run.lock")));
}

TEST_F(RunSafety, OtherReviewEmbeddingsAreRefusedByName) {
  write_embeddings(folder_, 5, 0.5f);
  const std::string with_reviews = command("run", "", "[\"id\",\"review\"]");
  ASSERT_EQ(run_program(with_reviews).code, 0);
  ASSERT_EQ(run_program("evaluate " + path("run")).code, 0);

  write_embeddings(folder_, 6, 0.5f);
  for (const std::string& line :
       {"evaluate " + path("run"), "recommend " + path("run") + " --user u100", with_reviews}) {
    expect_refusal(run_program(line), "source layer was 5 and is 6");
  }

  write_embeddings(folder_, 5, 0.25f);
  expect_refusal(run_program("evaluate " + path("run")),
                 "source review_sums.npy has other contents");
}

TEST_F(RunSafety, EmbeddingsThatAreNotFiniteAreRefused) {
  write_embeddings(folder_, 5, std::numeric_limits<float>::infinity());

  expect_refusal(run_program(command("run", "", "[\"id\",\"review\"]")), "is not finite");
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(RunSafety, FreshReplacesARunAndNothingElse) {
  fs::create_directories(path("mine/checkpoints"));
  write_text(path("mine/result.json"), "mine");

  expect_refusal(train("mine", "--fresh"), "is there and holds no run");
  EXPECT_EQ(entries("mine"), (std::set<std::string>{"checkpoints", "result.json"}));

  ASSERT_EQ(train("run").code, 0);
  write_text(path("run/notes.txt"), "mine");
  expect_refusal(train("run", "--fresh"), "'notes.txt' is not a run's");
  EXPECT_EQ(read_text(path("run/notes.txt")), "mine");
}

TEST_F(RunSafety, ARefusedConfigurationLeavesEverythingAsItWas) {
  expect_refusal(train("deep/run", "--set train.metric=NDGC@10"), "train.metric is 'NDGC@10'");
  EXPECT_FALSE(fs::exists(path("deep")));

  ASSERT_EQ(train("run").code, 0);
  const auto before = entries("run");
  const std::string result = read_text(path("run/result.json"));
  for (const char* wrong : {"train.metric=NDCG@10abc", "train.metric=NDCG@2000", "eval.k=x"}) {
    EXPECT_EQ(train("run", std::string("--fresh --set ") + wrong).code, 2) << wrong;
  }
  EXPECT_EQ(entries("run"), before);
  EXPECT_EQ(read_text(path("run/result.json")), result);
}

TEST_F(RunSafety, ACheckpointThatIsNotThereLeavesNothingBehind) {
  EXPECT_EQ(train("new", "--trace " + path("data/source/users.tsv")).code, 2);
  EXPECT_EQ(entries("new").count("result.json"), 0u);

  ASSERT_EQ(train("run").code, 0);
  expect_refusal(train("run", "--from 77"), "has no checkpoint of step 77");
  EXPECT_EQ(train("run").code, 0);
}

TEST_F(RunSafety, ARunIsReplacedOnlyWhenTheNewOneHasFinished) {
  ASSERT_EQ(train("run").code, 0);
  const std::string old_result = read_text(path("run/result.json"));
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string line = "exec " + program_path() + " " +
                             command("run",
                                     "--fresh --set train.epochs=100000"
                                     " --set train.patience=0") +
                             " >/dev/null 2>&1";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    std::_Exit(127);
  }
  while (!fs::exists(path(".run.replaced")) || !fs::exists(path("run/metrics.jsonl"))) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);

  EXPECT_EQ(read_text(path(".run.replaced/result.json")), old_result);
  ASSERT_EQ(train("run", "--fresh").code, 0);
  EXPECT_EQ(read_text(path("run/result.json")), old_result);
  EXPECT_FALSE(fs::exists(path(".run.replaced")));
}

TEST_F(RunSafety, TheBestParametersAreOneWithTheirManifestAtEveryMoment) {
  ASSERT_EQ(train("run").code, 0);
  const json manifest = json::parse(read_text(path("run/best.json")));
  ASSERT_TRUE(fs::exists(path("run/" + manifest["file"].get<std::string>())));
  const std::string result = run_program("evaluate " + path("run") + " --json --bootstrap 0").out;

  // Killed behind the arrays of a better step and before the manifest is switched.
  write_text(path("run/best-00009999.safetensors"), "half");
  write_text(path("run/best.json.cfaa-abcdef.tmp"), "{");
  write_text(path("run/checkpoints/step-00009999.safetensors"), "half");

  const json evaluated = json::parse(run_program("evaluate " + path("run") + " --json").out);
  EXPECT_EQ(evaluated["NDCG@10"], json::parse(result)["NDCG@10"]);
  ASSERT_EQ(train("run").code, 0);
  EXPECT_FALSE(fs::exists(path("run/best-00009999.safetensors")));
  EXPECT_FALSE(fs::exists(path("run/best.json.cfaa-abcdef.tmp")));
  EXPECT_FALSE(fs::exists(path("run/checkpoints/step-00009999.safetensors")));
}

TEST_F(RunSafety, RunsOfVersionOneAreRead) {
  ASSERT_EQ(train("run").code, 0);
  json manifest = json::parse(read_text(path("run/best.json")));
  fs::rename(path("run/" + manifest["file"].get<std::string>()), path("run/best.safetensors"));
  manifest.erase("file");
  write_text(path("run/best.json"), manifest.dump());

  EXPECT_EQ(run_program("recommend " + path("run") + " --user u100").code, 0);
  EXPECT_EQ(train("run").code, 0) << "and resumed";
}

TEST_F(RunSafety, NoCommandReplacesWhatItDidNotWrite) {
  ASSERT_EQ(train("run").code, 0);
  const std::string users = read_text(path("run/target_users.tsv")),
                    result = read_text(path("run/result.json"));
  write_text(path("lists.tsv"), "mine");

  expect_refusal(run_program("export " + path("run") + " --force --out " + path("run")),
                 "is a run");
  expect_refusal(run_program("baseline " + path("data") + " popularity --out " + path("run")),
                 "is a run");
  expect_refusal(run_program("recommend " + path("run") + " --all --out " + path("lists.tsv")),
                 "--force");
  expect_refusal(run_program("evaluate " + path("run") + " --lists " + path("lists.tsv")),
                 "--force");
  EXPECT_EQ(read_text(path("run/target_users.tsv")), users);
  EXPECT_EQ(read_text(path("run/result.json")), result);
  EXPECT_EQ(read_text(path("lists.tsv")), "mine");

  for (const char* again : {"", " --top 3"}) {
    EXPECT_EQ(run_program("recommend " + path("run") + " --all --force --out " + path("lists.tsv") +
                          again)
                  .code,
              0);
  }
  EXPECT_EQ(run_program("recommend " + path("run") + " --all --out " + path("lists.tsv")).code, 0)
      << "its own is replaced without --force";
}

TEST_F(RunSafety, ADashIsStdout) {
  ASSERT_EQ(train("run").code, 0);

  const Outcome lists = run_program("recommend " + path("run") + " --all --top 2 --out -");

  EXPECT_EQ(lists.code, 0) << lists.err;
  EXPECT_TRUE(lists.out.starts_with("user_id\trank\titem_id\tscore\nu100\t1\t")) << lists.out;
}

TEST_F(RunSafety, AWrongKindOfDirectoryIsNamed) {
  ASSERT_EQ(train("run").code, 0);

  expect_refusal(run_program("recommend " + path("data") + " --user u100"),
                 "is a prepared directory; a run");
  expect_refusal(run_program("export " + path("nowhere") + " --out " + path("out")),
                 "there is no such directory");
  expect_refusal(run_program("baseline " + path("run") + " popularity"),
                 "is a run; give the prepared directory that it was trained on, " + path("data"));
}

TEST_F(RunSafety, AnExportSaysWhatRanksAndHoldsTheScorer) {
  ASSERT_EQ(train("run").code, 0);

  const Outcome exported = run_program("export " + path("run") + " --json --out " + path("out"));

  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_NE(json::parse(exported.out)["score"].get<std::string>().find("mlp"), std::string::npos);
  EXPECT_TRUE(fs::exists(path("out/scorer_0_weight.npy")));
  expect_refusal(run_program("export " + path("run") + " --as faiss --out " + path("flat")),
                 "no inner product of vectors ranks as it does");
}

// The vectors alone, ranked by their product, give the run's own metrics.
TEST_F(RunSafety, VectorsForAFlatIndexRankLikeTheRun) {
  ASSERT_EQ(train("run", "--set model.scorer=dot").code, 0);
  const std::string out = path("flat");
  const Outcome exported = run_program("export " + path("run") + " --as faiss --out " + out);
  ASSERT_EQ(exported.code, 0) << exported.err;

  const Outcome measured =
      run_program("evaluate " + path("data") + " --json --user-embeddings " + out +
                  "/target_users.npy --item-embeddings " + out + "/target_items.npy");

  ASSERT_EQ(measured.code, 0) << measured.err;
  const json result = json::parse(read_text(path("run/result.json")));
  EXPECT_EQ(json::parse(measured.out)["NDCG@10"], result["target"]["NDCG@10"]);
}

}  // namespace
}  // namespace cfaa::test
