// cfaa_gpu config, and how the commands take a configuration.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/paths.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

TEST(ConfigProgram, FitsAHundredColumns) {
  for (const char* form : {"config", "config --markdown"}) {
    const Outcome outcome = run_program(form);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::stringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(ConfigProgram, TheReferencePageIsWhatTheProgramPrints) {
  EXPECT_EQ(read_text(source_path("docs/configuration.md")), run_program("config --markdown").out)
      << "write it anew: cfaa_gpu config --markdown >docs/configuration.md";
}

TEST(ConfigProgram, MachineOutputHasTypesAndBounds) {
  const Outcome outcome = run_program("config --set train.epochs=7 --json");

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json keys = json::parse(outcome.out);
  EXPECT_EQ(keys["train"]["epochs"]["type"], "integer");
  EXPECT_EQ(keys["train"]["epochs"]["default"], 7);
  EXPECT_EQ(keys["train"]["epochs"]["minimum"], 0);
  EXPECT_EQ(keys["train"]["learning_rate"]["exclusiveMinimum"], 0);
  EXPECT_EQ(keys["train"]["loss"]["enum"], json::array({"bce", "bpr"}));
  EXPECT_EQ(keys["model"]["layers"]["items"]["type"], "integer");
  EXPECT_EQ(keys["prepare"]["quotes"]["type"], "boolean");
}

TEST(ConfigProgram, ItsValuesAreAConfiguration) {
  const TemporaryFolder folder;
  write_text(folder.path("all.json"), run_program("config --set train.epochs=7 --values").out);

  const Outcome again = run_program("config --values --config " + folder.path("all.json"));

  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, read_text(folder.path("all.json")));
}

TEST(ConfigProgram, EveryCommandTakesAConfigurationAsArgumentOrFlag) {
  const TemporaryFolder folder;
  write_text(folder.path("c.json"), R"({"train": {"epoks": 1}})");
  for (const char* command :
       {"config", "train data", "embed data", "baseline data popularity", "evaluate data",
        "prepare --source a --target b --out c", "discrepancy a.npy b.npy"}) {
    for (const char* flag : {" ", " --config "}) {
      const Outcome outcome = run_program(command + std::string(flag) + folder.path("c.json"));

      EXPECT_EQ(outcome.code, 2) << command << flag;
      EXPECT_NE(outcome.err.find("did you mean 'epochs'?"), std::string::npos)
          << command << flag << outcome.err;
    }
    const Outcome outcome = run_program(command + std::string(" --set train.epoks=1"));

    EXPECT_NE(outcome.err.find("did you mean 'epochs'?"), std::string::npos)
        << command << outcome.err;
  }
}

}  // namespace
}  // namespace cfaa::test
