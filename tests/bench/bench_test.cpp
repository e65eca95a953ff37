#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/on_device.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

const std::string kSmall = "bench --quick --n 16 --d 4 --k 5 --threads 2 ";

class BenchCommand : public OnDevice {};
CFAA_TEST_ON_DEVICES(BenchCommand);

TEST_P(BenchCommand, TimesEveryOpAndWritesTheFigures) {
  const TemporaryFolder folder;
  const bool cuda = GetParam() == "cuda";  // emulated, an op takes many seconds more
  const std::string alignment =
      "--precision float --filter typical_samples,coupling,vertical,horizontal,linear_last";
  const Outcome outcome = run_program(kSmall + (cuda ? alignment : "") + " --device " + GetParam() +
                                      " --out " + folder.path("b.json"));

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json figures = json::parse(read_text(folder.path("b.json")));
  EXPECT_GE(figures["cases"].size(), cuda ? 6u : 30u);
  for (const json& c : figures["cases"]) {
    EXPECT_GT(c["seconds"]["median"].get<double>(), 0) << c;
    EXPECT_GE(c["repetitions"].get<int>(), 3) << c;
  }
  EXPECT_GT(figures["peaks"]["flops_float"].get<double>(), 0);
  EXPECT_EQ(figures.contains("kernels"), cuda);
  EXPECT_NE(outcome.out.find("horizontal_loss"), std::string::npos);
}

TEST(BenchComparison, ASlowdownOverTheThresholdIsExitCodeOne) {
  const TemporaryFolder folder;
  const std::string command = kSmall + "--filter coupling_exact --precision float ";
  ASSERT_EQ(run_program(command + "--out " + folder.path("b.json")).code, 0);
  json older = json::parse(read_text(folder.path("b.json")));

  older["cases"][0]["seconds"]["median"] = 1e-12;
  write_text(folder.path("fast.json"), older.dump());
  older["cases"][0]["seconds"]["median"] = 1e3;
  write_text(folder.path("slow.json"), older.dump());

  EXPECT_EQ(run_program(command + "--compare " + folder.path("fast.json")).code, 1);
  EXPECT_EQ(run_program(command + "--compare " + folder.path("slow.json")).code, 0);
}

TEST(BenchComparison, AFileOfSomethingElseIsRefused) {
  const TemporaryFolder folder;
  write_text(folder.path("x.json"), "{}");
  const Outcome outcome = run_program(kSmall + "--compare " + folder.path("x.json"));

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("x.json"), std::string::npos);
}

TEST(BenchOutput, WhatBenchDidNotWriteIsLeftAlone) {
  const TemporaryFolder folder;
  const std::string file = folder.path("mine.json"),
                    command = kSmall + "--filter coupling_exact --precision float --out " + file;
  write_text(file, "{}");

  const Outcome refused = run_program(command);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("mine.json"), std::string::npos) << refused.err;
  EXPECT_EQ(read_text(file), "{}");

  EXPECT_EQ(run_program(command + " --force").code, 0);
  EXPECT_EQ(run_program(command).code, 0) << "its own file";
}

TEST(BenchFilter, ANameThatNoCaseHasIsRefused) {
  const Outcome outcome = run_program(kSmall + "--filter nosuchthing");

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("nosuchthing"), std::string::npos);
}

}  // namespace
}  // namespace cfaa::test
