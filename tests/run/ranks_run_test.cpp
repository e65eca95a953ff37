// A run that several ranks train: its files are to the byte those of one rank, also where it stops
// or is killed and goes on with other ranks.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "host/device/make_context.h"
#include "host/run/train.h"
#include "tests/paths.h"
#include "tests/refusal.h"
#include "tests/run/small_runs.h"
#include "tests/thread_group.h"

namespace cfaa::test {
namespace {

namespace fs = std::filesystem;

// All that a run leaves but what names its place and its checkpoints.
std::map<std::string, std::string> files_of(const std::string& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    const bool compared = name == "result.json" || name == "metrics.jsonl" ||
                          name.starts_with("best") || name.ends_with(".tsv");
    if (compared && entry.is_regular_file()) files[name] = read_text(entry.path().string());
  }
  return files;
}

void expect_same_files(const std::string& run, const std::string& expected) {
  const auto found = files_of(run), wanted = files_of(expected);
  EXPECT_GE(wanted.size(), 4u);
  for (const auto& [name, bytes] : wanted) {
    ASSERT_TRUE(found.contains(name)) << run << " has no " << name;
    EXPECT_TRUE(found.at(name) == bytes) << name << " of " << run;
  }
  EXPECT_EQ(found.size(), wanted.size());
}

class RunOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    write_domain(folder_, "source");
    write_domain(folder_, "target");
  }

  static std::vector<std::string> settings() {
    return {"model.inputs=[\"id\",\"history\"]",
            "model.dim=8",
            "model.layers=[8]",
            "model.scorer_layers=[4]",
            "train.batch_size=8",
            "train.parts=4",
            "train.epochs=3",
            "train.checkpoint_every=2",
            "train.log_every=2",
            "eval.bootstrap=0"};
  }

  // Trains on threads; the first rank is told to stop once it has logged this step.
  void train_on(int ranks, const std::string& out, int64_t stop_at = 0) {
    TrainRequest request{.out = folder_.path(out)};
    for (const std::string& setting : settings()) request.config.set(setting);
    const TrainingSet data(folder_.path("data"), request.config.model);
    run_on_threads(ranks, [&](Group& group) {
      std::atomic<bool> stop = false;
      TrainRequest own = request;
      own.group = &group;
      own.stop = &stop;
      own.metrics = [&](const std::string& line) {
        const auto step = nlohmann::json::parse(line).at("step").get<int64_t>();
        if (stop_at > 0 && step >= stop_at) stop = true;
      };
      const auto context = make_context("cpu", {.threads = 1 + group.rank() % 2});
      const TrainedRun trained = train_run(*context, data, own);
      EXPECT_EQ(trained.stopped, stop_at > 0);
      if (stop_at > 0) {
        EXPECT_EQ(trained.steps, stop_at);
      }
    });
  }

  TemporaryFolder folder_;
};

TEST_F(RunOfRanks, HasTheBytesOfOneRank) {
  train_on(1, "one");

  for (const int ranks : {2, 4}) {
    const std::string out = "of" + std::to_string(ranks);
    train_on(ranks, out);
    expect_same_files(folder_.path(out), folder_.path("one"));
  }
}

TEST_F(RunOfRanks, StoppedItGoesOnWithOtherRanks) {
  train_on(1, "one");

  train_on(4, "stopped", 4);
  train_on(2, "stopped", 8);
  train_on(1, "stopped");

  expect_same_files(folder_.path("stopped"), folder_.path("one"));
}

TEST_F(RunOfRanks, NeedsAsManyPartsAsRanks) {
  TrainRequest request{.out = folder_.path("refused")};
  for (const std::string& setting : settings()) request.config.set(setting);
  request.config.train.parts = 1;
  const TrainingSet data(folder_.path("data"), request.config.model);

  const std::string message = error_of([&] {
    run_on_threads(2, [&](Group& group) {
      TrainRequest own = request;
      own.group = &group;
      train_run(*make_context("cpu", {.threads = 1}), data, own);
    });
  });

  EXPECT_TRUE(message.starts_with("train.parts is 1, and there are 2 ranks")) << message;
  EXPECT_FALSE(fs::exists(folder_.path("refused")));
}

// As a user starts them. The mpi preset alone connects them.
class RunOfMpirun : public RunOfRanks {
 protected:
  static std::string mpirun(int ranks) {
    return "mpirun --allow-run-as-root --oversubscribe -n " + std::to_string(ranks) + " ";
  }

  void SetUp() override {
    RunOfRanks::SetUp();
    if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun";
  }

  void need_mpi() {
    const Outcome tried = run_program(command("tried"), mpirun(2));
    if (tried.err.find("built without MPI") != std::string::npos) {
      EXPECT_EQ(tried.code, 2);
      EXPECT_FALSE(fs::exists(folder_.path("tried")));
      GTEST_SKIP() << "the program was built without MPI, and says so";
    }
    ASSERT_EQ(tried.code, 0) << tried.err;
  }

  std::string command(const std::string& out) {
    std::string line =
        "train " + folder_.path("data") + " --threads 1 --json --out " + folder_.path(out);
    for (const std::string& setting : settings()) line += " --set '" + setting + "'";
    return line;
  }

  // mpirun in a process group of its own.
  pid_t start(int ranks, const std::string& out) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::setpgid(0, 0);
    const std::string line =
        "exec " + mpirun(ranks) + program_path() + " " + command(out) + " >/dev/null 2>&1";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    std::_Exit(127);
  }

  // The ranks that mpirun has started and that train this run.
  std::vector<pid_t> ranks_of(const std::string& out) {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid == 0) continue;
      const std::string line = read_text_or_nothing(entry.path() / "cmdline");
      if (line.starts_with(program_path() + '\0') &&
          line.find(folder_.path(out) + '\0') != std::string::npos) {
        found.push_back(pid);
      }
    }
    return found;
  }

  static std::string read_text_or_nothing(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(RunOfMpirun, HasTheBytesOfOneRank) {
  ASSERT_NO_FATAL_FAILURE(need_mpi());
  if (IsSkipped()) return;
  const Outcome one = run_program(command("one"));
  ASSERT_EQ(one.code, 0) << one.err;

  for (const int ranks : {2, 4}) {
    const std::string out = "of" + std::to_string(ranks);
    const Outcome found = run_program(command(out), mpirun(ranks));

    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_EQ(found.out, one.out) << "one rank talks";
    expect_same_files(folder_.path(out), folder_.path("one"));
  }
}

TEST_F(RunOfMpirun, LosesARankAndGoesOnWithOthers) {
  ASSERT_NO_FATAL_FAILURE(need_mpi());
  if (IsSkipped()) return;
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(run_program(command("whole"), mpirun(2)).code, 0);
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - before);
  std::mt19937 random(11);
  const int rounds = kills_asked_for(2);

  int killed = 0;
  for (int round = 0; killed < rounds && round < 10 * rounds; ++round) {
    const pid_t job = start(round % 2 == 0 ? 4 : 2, "broken");
    std::this_thread::sleep_for(time * static_cast<int>(300 + random() % 700) / 1000);
    const std::vector<pid_t> ranks = ranks_of("broken");
    if (!ranks.empty()) ::kill(ranks[random() % ranks.size()], SIGKILL);
    const auto death = std::chrono::steady_clock::now();
    int status = 0;
    ::waitpid(job, &status, 0);
    const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (failed) {
      EXPECT_LT(std::chrono::steady_clock::now() - death, std::chrono::seconds(20));
      ++killed;
      continue;
    }
    expect_same_files(folder_.path("broken"), folder_.path("whole"));
    fs::remove_all(folder_.path("broken"));
  }
  const Outcome last = run_program(command("broken"));

  ASSERT_EQ(last.code, 0) << last.err;
  std::cout << "a rank killed " << killed << " times\n";
  EXPECT_GE(killed, rounds);
  expect_same_files(folder_.path("broken"), folder_.path("whole"));
}

}  // namespace
}  // namespace cfaa::test
