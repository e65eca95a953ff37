// Training as a user runs it, disturbed: killed, out of disk, with a damaged checkpoint.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/paths.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

namespace fs = std::filesystem;

class TrainFaults : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_program("synthesize --out " + folder_.path("raw") +
                          " --users 150 --items 120 --interactions 1200")
                  .code,
              0);
    ASSERT_EQ(run_program("prepare --source " + folder_.path("raw/source.jsonl") + " --target " +
                          folder_.path("raw/target.jsonl") + " --out " + data_)
                  .code,
              0);
  }

  // Ids and histories only: no encoder is needed.
  std::string command(const std::string& out) const {
    return "train " + data_ + " --out " + out +
           " --threads 1 --set 'model.inputs=[\"id\",\"history\"]' --set model.dim=8"
           " --set 'model.layers=[8]' --set 'model.scorer_layers=[4]' --set train.batch_size=32"
           " --set train.epochs=4 --set train.checkpoint_every=5 --set train.log_every=2"
           " --set eval.bootstrap=0";
  }

  static pid_t start(const std::string& arguments) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const std::string line = "exec " + program_path() + " " + arguments + " >/dev/null 2>&1";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    std::_Exit(127);
  }

  TemporaryFolder folder_;
  std::string data_ = folder_.path("data");
};

TEST_F(TrainFaults, KilledAnywhereItEndsWithTheSameBits) {
  const std::string whole = folder_.path("whole"), broken = folder_.path("broken");
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(run_program(command(whole)).code, 0);
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - before);
  const int rounds = kills_asked_for(5);
  std::mt19937 random(7);

  int killed = 0, runs = 0, finished = 0;
  while (killed < rounds && runs < 10 * rounds) {
    const pid_t child = start(command(broken));
    std::this_thread::sleep_for(time * static_cast<int>(random() % 1000) / 1000);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    ++runs;
    if (!WIFEXITED(status)) continue;
    // It came to its end: the next round starts over.
    ASSERT_EQ(WEXITSTATUS(status), 0);
    ++finished;
    for (const char* name : {"result.json", "best.json", "metrics.jsonl"}) {
      ASSERT_EQ(read_text(broken + "/" + name), read_text(whole + "/" + name)) << name;
    }
    fs::remove_all(broken);
  }
  const Outcome last = run_program(command(broken));
  ASSERT_EQ(last.code, 0) << last.err;

  std::cout << "killed " << killed << " times; " << finished + 1 << " runs came to their end\n";
  EXPECT_GE(killed, rounds);
  for (const char* name : {"result.json", "best.json", "metrics.jsonl"}) {
    EXPECT_EQ(read_text(broken + "/" + name), read_text(whole + "/" + name)) << name;
  }
}

// In its first phase, at the step before which the target becomes a copy, and behind it.
TEST_F(TrainFaults, ResumedInAnyPhaseItEndsWithTheSameBits) {
  const std::string settings =
      " --set model.variant=base --set 'model.inputs=[\"history\"]' --set model.residual=none"
      " --set train.eval_every=0 --set train.checkpoint_every=1 --set train.learning_rate=0.01"
      " --set train.phases.first.steps=5 --set 'train.phases.first.freeze=[\"target\"]'"
      " --set 'train.phases.second.freeze=[\"source\",\"scorer\"]'"
      " --set train.phases.second.start=copy_source --set losses.adversary.weight=1"
      " --set losses.adversary.phase=second --set losses.adversary.goal=confuse"
      " --set train.steps=12 --set train.keep_checkpoints=12";
  const std::string run = folder_.path("run");
  const auto files = [&] {
    return read_text(run + "/result.json") + read_text(run + "/best.json") +
           read_text(run + "/metrics.jsonl");
  };
  const Outcome whole = run_program(command(run) + settings);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::string expected = files();

  for (const char* step : {"3", "5", "8"}) {
    fs::remove(run + "/result.json");
    const Outcome resumed = run_program(command(run) + settings + " --from " + step);

    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(files(), expected) << "from step " << step;
  }
}

TEST_F(TrainFaults, ARunKilledInItsFirstFileStartsAgain) {
  const std::string run = folder_.path("run"), other = folder_.path("other");
  fs::create_directories(run);
  fs::create_directories(other);
  write_text(run + "/run.json.aB3dE6.tmp", "{");
  write_text(other + "/letters.txt", "mine");

  EXPECT_EQ(run_program(command(run)).code, 0);
  EXPECT_EQ(run_program(command(other)).code, 2) << "somebody else's files are not trained into";
}

TEST_F(TrainFaults, ADamagedCheckpointIsRefusedAndTheOneBeforeIsOffered) {
  const std::string run = folder_.path("run");
  ASSERT_EQ(run_program(command(run)).code, 0);
  std::vector<fs::path> checkpoints;
  for (const auto& entry : fs::directory_iterator(run + "/checkpoints")) {
    if (entry.path().extension() == ".safetensors") checkpoints.push_back(entry.path());
  }
  std::sort(checkpoints.begin(), checkpoints.end());
  ASSERT_EQ(checkpoints.size(), 2u);
  const std::string good = read_text(run + "/result.json");
  std::string bytes = read_text(checkpoints.back().string());
  bytes[bytes.size() / 2] ^= 1;
  write_text(checkpoints.back().string(), bytes);

  const Outcome refused = run_program(command(run));
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("is damaged"), std::string::npos) << refused.err;
  const std::size_t offer = refused.err.find("--from ");
  ASSERT_NE(offer, std::string::npos) << refused.err;

  const std::string flag = refused.err.substr(offer, refused.err.find('\n', offer) - offer);
  const Outcome resumed = run_program(command(run) + " " + flag);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(read_text(run + "/result.json"), good);
}

// With such a rate the scores overflow in the second step; it is found at the checkpoint of the
// fifth, which is not written.
TEST_F(TrainFaults, ALossThatIsNotFiniteStopsTheRunNamingTheStep) {
  const Outcome broken = run_program(command(folder_.path("run")) +
                                     " --set train.learning_rate=1e30 --set train.log_every=1000");

  EXPECT_EQ(broken.code, 2);
  EXPECT_NE(broken.err.find("training broke: step 2: "), std::string::npos) << broken.err;
  EXPECT_FALSE(fs::exists(folder_.path("run/checkpoints/step-00000005.json")));
}

TEST_F(TrainFaults, OtherSettingsOrDataAreRefusedNamingTheDifference) {
  const std::string run = folder_.path("run");
  ASSERT_EQ(run_program(command(run)).code, 0);

  const Outcome outcome = run_program(command(run) + " --set model.dim=9");

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("model.dim (8 -> 9)"), std::string::npos) << outcome.err;
}

TEST_F(TrainFaults, AFullDiskIsSaidAndTheRunGoesOnAfterwards) {
  const std::string disk = folder_.path("disk");
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "a small tmpfs cannot be mounted here";
  }
  const Outcome full = run_program(command(disk + "/run"));
  ASSERT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  const Outcome after = run_program(command(disk + "/run"));
  const std::string result = read_text(disk + "/run/result.json");
  ::umount(disk.c_str());
  ASSERT_EQ(run_program(command(folder_.path("whole"))).code, 0);

  EXPECT_EQ(full.code, 2);
  EXPECT_NE(full.err.find("No space left"), std::string::npos) << full.err;
  EXPECT_EQ(after.code, 0) << after.err;
  EXPECT_EQ(result, read_text(folder_.path("whole") + "/result.json"));
}

TEST_F(TrainFaults, ASignalEndsTheStepAndSaysHowToGoOn) {
  const std::string run = folder_.path("run"), whole = folder_.path("whole");
  ASSERT_EQ(run_program(command(whole)).code, 0);
  int interrupted = 0;
  for (int i = 0; i < 20 && interrupted < 2; ++i) {
    const pid_t child = start(command(run));
    std::this_thread::sleep_for(std::chrono::milliseconds(30 + 20 * i));
    ::kill(child, SIGTERM);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM) ++interrupted;
  }
  ASSERT_EQ(run_program(command(run)).code, 0);

  EXPECT_GT(interrupted, 0);
  EXPECT_EQ(read_text(run + "/result.json"), read_text(whole + "/result.json"));
}

}  // namespace
}  // namespace cfaa::test
