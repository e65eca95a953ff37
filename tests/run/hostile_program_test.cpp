// What hostile and absurd input gets: one sentence and exit code 2, whatever the file.

#include <gtest/gtest.h>

#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

// Expects one line on stderr that holds `said`, and exit code 2.
void expect_refusal(const std::string& arguments, const std::string& said) {
  const Outcome outcome = run_program(arguments);

  EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
  EXPECT_NE(outcome.err.find(said), std::string::npos) << arguments << "\n" << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

class HostileProgram : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    write_text(folder_.path(name), content);
    return folder_.path(name);
  }

  TemporaryFolder folder_;
};

TEST_F(HostileProgram, AConfigurationNestedDeepIsRefused) {
  expect_refusal("config " + file("c.json", "{\"train\": " + nested(200'000) + "}"), "is nested");
  expect_refusal("config --set model.layers=" + nested(50'000), "model.layers must be");
}

TEST_F(HostileProgram, ARunNestedDeepIsRefused) {
  file("run.json", "{\"config\": " + nested(200'000) + "}");

  expect_refusal("recommend " + folder_.path() + " --user u", "run.json: is nested");
}

TEST_F(HostileProgram, AModelNestedDeepIsRefused) {
  file("config.json", "{\"model_type\": " + nested(200'000) + "}");

  expect_refusal("embed " + file("t.txt", "a text\n") + " --model " + folder_.path() + " --out " +
                     folder_.path("v.npy"),
                 "config.json: is nested");
}

TEST_F(HostileProgram, AbsurdNumbersAreRefusedByKey) {
  for (const std::string key : {"alignment.k", "train.epochs", "alignment.typical_iterations"}) {
    expect_refusal("config --set " + key + "=4611686018427387904", key + " must be");
  }
}

TEST_F(HostileProgram, AMetricThatCannotBeRankedIsRefused) {
  for (const std::string metric : {"NDCG@2000", "NDCG@10abc", "NDCG@", "NDCG@0", "NDCG", "@10",
                                   "NDCG@-1", "NDCG@99999999999999999999", "Fun@10"}) {
    expect_refusal("config --set train.metric=" + metric, "train.metric is '" + metric + "'");
  }
}

TEST_F(HostileProgram, UnknownKeysOfEverySectionAreRefused) {
  expect_refusal("config " + file("c.json", R"({"prepare": {"positiv": 4}})"),
                 "did you mean 'positive'?");
  expect_refusal("config " + file("c.json", R"({"embed": {"layr": "last"}})"),
                 "did you mean 'layer'?");
}

TEST_F(HostileProgram, EscapeSequencesInAMessageAreShownAndNotObeyed) {
  const std::string config = file("c.json", R"({"train": {"\u001b[2J\u009b31m": 1}})");

  const Outcome outcome = run_program("config " + config);

  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find('\x1B'), std::string::npos);
  EXPECT_NE(outcome.err.find("'\\x1B[2J\\u009B31m'"), std::string::npos) << outcome.err;
}

TEST_F(HostileProgram, ControlsInJsonAreShownAndNotObeyed) {
  const std::string config = file("c.json", R"({"embed": {"model": "\u001b\u007f\u009b31m"}})");

  const Outcome outcome = run_program("config " + config + " --json");

  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string raw : {"\x1B", "\x7F", "\xC2\x9B"}) {
    EXPECT_EQ(outcome.out.find(raw), std::string::npos);
  }
}

// Under a limit a command ends within the minute that it is given, one way or the other.
TEST_F(HostileProgram, NothingHangsWhereTheAddressSpaceIsLimited) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve terabytes of addresses";
#endif
  for (const std::string megabytes : {"100", "200", "300", "500", "800"}) {
    const std::string limit = "ulimit -v " + megabytes + "000; timeout 60 ";
    for (const std::string command : {"--version", "bench --filter coupling --seconds 0.01",
                                      "bench --filter coupling --seconds 0.01 --threads 64"}) {
      const Outcome outcome = run_program(command, limit);

      EXPECT_NE(outcome.code, 124) << megabytes << " MB: " << command;
      EXPECT_LT(outcome.code, 126) << megabytes << " MB: " << command << "\n" << outcome.err;
    }
  }
}

}  // namespace
}  // namespace cfaa::test
