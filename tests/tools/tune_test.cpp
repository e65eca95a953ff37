// tools/tune as a user runs it: what it refuses, and a search that was killed.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/paths.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using testing::HasSubstr;

class Tune : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null")) {
      GTEST_SKIP() << "Python 3.9 or later is not on this machine";
    }
  }
  std::string command(const std::string& arguments) {
    return "cd " + folder_.path() + " && exec " + source_path("tools/tune") + " --program " +
           program_path() + " --device cpu --threads 1 " + arguments;
  }
  Outcome run(const std::string& arguments) {
    const std::string line =
        command(arguments) + " >" + folder_.path("stdout") + " 2>" + folder_.path("stderr");
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder_.path("stdout")),
            read_text(folder_.path("stderr"))};
  }
  void run_and_kill(const std::string& arguments, std::chrono::milliseconds after) {
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_RDWR);
      ::dup2(null, 1);
      ::dup2(null, 2);
      ::execl("/bin/sh", "sh", "-c", command(arguments).c_str(), nullptr);
      ::_exit(127);
    }
    std::this_thread::sleep_for(after);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  TemporaryFolder folder_;
};

TEST_F(Tune, ASpaceThatTheProgramWouldNotTakeIsRefusedBeforeAnyTrial) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"train.rate": [1]})", "train.rate is no key of the configuration"},
      {R"({"learning_rate": [1]})", "did you mean"},
      {R"({"train.learning_rate": [0]})", "0 is out of its bounds"},
      {R"({"model.variant": ["x"]})", "is none of base, v, h, full"},
      {R"({"model.dim": {"low": 1.5, "high": 8}})", "1.5 is not of its type, integer"},
      {R"({"model.dim": {"low": 8, "high": 4}})", "low is above high"},
  };
  for (const auto& [space, says] : cases) {
    write_text(folder_.path("space.json"), space);

    const Outcome outcome = run("space.json data --out runs");

    EXPECT_EQ(outcome.code, 2) << space;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << space;
    EXPECT_FALSE(std::filesystem::exists(folder_.path("runs")));
  }
}

TEST_F(Tune, KilledAndResumedItChoosesTheSame) {
  if (!std::filesystem::exists(source_path("build/tune/venv/requirements.txt")) &&
      std::getenv("CFAA_LONG_TESTS") == nullptr) {
    GTEST_SKIP() << "Optuna is not in build/tune/venv; tools/tune or tools/test --full fetches it";
  }
  const std::string raw = folder_.path("raw"), data = folder_.path("data");
  ASSERT_EQ(run_program("synthesize --users 120 --items 80 --interactions 1200 --out " + raw).code,
            0);
  ASSERT_EQ(run_program("prepare --source " + raw + "/source.jsonl --target " + raw +
                        "/target.jsonl --out " + data)
                .code,
            0);
  write_text(folder_.path("space.json"),
             R"({"train.embedding_rate": {"low": 1e-3, "high": 0.1, "log": true},
                 "model.dim": [8, 16]})");
  const std::string search =
      "space.json data --trials 4 --startup 2 --finalists 1 --seeds 2 --set train.steps=12 --set "
      "'model.inputs=[\"id\",\"history\"]' --set model.variant=base ";
  const Outcome whole = run(search + "--out whole");
  ASSERT_EQ(whole.code, 0) << whole.err;

  for (int i = 0; i < kills_asked_for(2); ++i) {
    run_and_kill(search + "--out parts", std::chrono::milliseconds(1500 + 700 * i));
  }
  const Outcome rest = run(search + "--out parts");

  ASSERT_EQ(rest.code, 0) << rest.err;
  for (const char* file : {"/trials.tsv", "/best.json"}) {
    EXPECT_EQ(read_text(folder_.path("whole") + file), read_text(folder_.path("parts") + file));
  }
  EXPECT_THAT(run("space.json data --seed 1 --out parts").err, HasSubstr("the study 'cfaa' has"));
}

}  // namespace
}  // namespace cfaa::test
