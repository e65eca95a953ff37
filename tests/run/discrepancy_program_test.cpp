#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "host/io/npy.h"
#include "tests/compare.h"
#include "tests/on_device.h"
#include "tests/paths.h"
#include "tests/program.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

std::string fixture(const std::string& name) {
  return fixture_path("alignment/" + name);
}

// Everything the program says of a bad call is one line on stderr, and the code is 2.
void expect_refusal(const std::string& arguments, const std::vector<std::string>& words) {
  const Outcome outcome = run_program(arguments);

  EXPECT_EQ(outcome.code, 2) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  for (const std::string& word : words) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << word << " is not in: " << outcome.err;
  }
}

class DiscrepancyCommand : public OnDevice {};
CFAA_TEST_ON_DEVICES(DiscrepancyCommand);

TEST_P(DiscrepancyCommand, ReportsTheGoldenLossesAsJson) {
  for (const std::string name : {"tiny", "small", "collapse"}) {
    const json expected = json::parse(read_text(fixture(name) + "/case.json"))["expected"];
    const Outcome outcome = run_program(
        "discrepancy " + fixture(name) + "/zs.npy " + fixture(name) + "/zt.npy --config " +
        fixture(name) + "/case.json --precision double --json --device " + GetParam());

    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json report = json::parse(outcome.out);
    EXPECT_TRUE(close(report["vertical"]["loss"].get<double>(),
                      expected["vertical_sinkhorn"].get<double>(), 1e-9));
    EXPECT_TRUE(close(report["horizontal"]["loss"].get<double>(),
                      expected["horizontal_exact"].get<double>(), 1e-9));
    EXPECT_EQ(report["horizontal"]["objective"]["source"].size(), 3u);
    EXPECT_EQ(report["precision"], "double");
  }
}

TEST_P(DiscrepancyCommand, FlagsOverrideTheConfiguration) {
  const json expected = json::parse(read_text(fixture("tiny") + "/case.json"))["expected"];
  const Outcome outcome =
      run_program("discrepancy " + fixture("tiny") + "/zs.npy " + fixture("tiny") +
                  "/zt.npy --config " + fixture("tiny") +
                  "/case.json --ot-solver exact --slim-step paper --json --device " + GetParam());

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_TRUE(close(report["vertical"]["loss"].get<double>(),
                    expected["vertical_exact"].get<double>(), 2e-4));
  EXPECT_TRUE(close(report["horizontal"]["loss"].get<double>(),
                    expected["horizontal_paper"].get<double>(), 2e-4));
  EXPECT_EQ(report["vertical"]["solver"], "exact");
}

TEST_P(DiscrepancyCommand, WritesGradientsAndIntermediates) {
  const TemporaryFolder folder;
  const Outcome outcome = run_program(
      "discrepancy " + fixture("tiny") + "/zs.npy " + fixture("tiny") + "/zt.npy --config " +
      fixture("tiny") + "/case.json --precision double --gradients " + folder.path("g") +
      " --intermediates " + folder.path("i") + " --json --device " + GetParam());

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const auto& [written, golden] :
       {std::pair{"g/vertical_zs", "vertical_sinkhorn_grad_zs"},
        std::pair{"g/vertical_zt", "vertical_sinkhorn_grad_zt"},
        std::pair{"g/horizontal_zs", "horizontal_grad_zs"},
        std::pair{"g/horizontal_zt", "horizontal_grad_zt"}, std::pair{"i/typical_s", "typical_s"},
        std::pair{"i/typical_t", "typical_t"}, std::pair{"i/slim_b_s", "slim_b_s"},
        std::pair{"i/slim_b_t", "slim_b_t"}}) {
    const NpyFile file(folder.path(std::string(written) + ".npy"));
    const NpyFile wanted(fixture("tiny") + "/" + golden + ".npy");
    EXPECT_EQ(file.shape(), wanted.shape()) << written;
    EXPECT_EQ(file.dtype(), DType::f64) << written;
    EXPECT_TRUE(close(file.read<double>(), wanted.read<double>(), 1e-8)) << written;
  }
  EXPECT_EQ(NpyFile(folder.path("i/plans.npy")).shape(), (std::vector<int64_t>{10, 12, 12}));
  EXPECT_EQ(NpyFile(folder.path("i/laplacian_s.npy")).shape(), (std::vector<int64_t>{10, 10}));
}

TEST_P(DiscrepancyCommand, APersonSeesTheAttributesThatDifferMost) {
  const Outcome outcome = run_program("discrepancy " + fixture("small") + "/zs.npy " +
                                      fixture("small") + "/zt.npy --device " + GetParam());

  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("vertical"), std::string::npos);
  EXPECT_NE(outcome.out.find("attributes that differ most"), std::string::npos);
}

class BadCalls : public testing::Test {
 protected:
  BadCalls() {
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    write_npy(folder_.path("good.npy"), {3, 2}, values.data());
    write_npy(folder_.path("vector.npy"), {6}, values.data());
    write_npy(folder_.path("wide.npy"), {2, 3}, values.data());
    write_npy(folder_.path("narrow.npy"), {6, 1}, values.data());
    write_npy(folder_.path("empty.npy"), {0, 2}, values.data());
    const std::vector<int64_t> whole = {1, 2, 3, 4, 5, 6};
    write_npy(folder_.path("int.npy"), {3, 2}, whole.data());
    std::vector<float> broken = values;
    broken[3] = std::numeric_limits<float>::quiet_NaN();
    write_npy(folder_.path("nan.npy"), {3, 2}, broken.data());
    broken[3] = std::numeric_limits<float>::infinity();
    write_npy(folder_.path("inf.npy"), {3, 2}, broken.data());
    const std::string content = read_text(folder_.path("good.npy"));
    write_text(folder_.path("cut.npy"), content.substr(0, content.size() - 3));
    write_text(folder_.path("text.npy"), "1 2 3\n");
  }

  std::string pair(const std::string& source, const std::string& target) const {
    return "discrepancy " + folder_.path(source) + " " + folder_.path(target) + " ";
  }

  TemporaryFolder folder_;
};

TEST_F(BadCalls, FilesThatAreNotEmbeddingsAreNamed) {
  expect_refusal(pair("missing.npy", "good.npy"), {"missing.npy", "No such file"});
  expect_refusal("discrepancy " + folder_.path() + " " + folder_.path("good.npy"),
                 {"is a directory"});
  expect_refusal(pair("good.npy", "vector.npy"), {"vector.npy", "1 dimension"});
  expect_refusal(pair("int.npy", "good.npy"), {"int.npy", "int64"});
  expect_refusal(pair("good.npy", "wide.npy"), {"wide.npy", "2 columns", "3"});
  expect_refusal(pair("empty.npy", "good.npy"), {"empty.npy", "0 x 2"});
  expect_refusal(pair("nan.npy", "good.npy"), {"nan.npy", "row 1, column 1", "nan"});
  expect_refusal(pair("good.npy", "inf.npy"), {"inf.npy", "row 1, column 1", "inf"});
  expect_refusal(pair("cut.npy", "good.npy"), {"cut.npy", "cut off"});
  expect_refusal(pair("text.npy", "good.npy"), {"text.npy", "not a .npy file"});
  expect_refusal(pair("narrow.npy", "narrow.npy"), {"narrow.npy", "--loss vertical"});
}

TEST_F(BadCalls, FlagsAndKeysThatDoNotExistAreAnsweredWithTheNearest) {
  expect_refusal(pair("good.npy", "good.npy") + "--epsilno 1", {"--epsilno", "--epsilon"});
  expect_refusal(pair("good.npy", "good.npy") + "--precision half", {"half"});
  expect_refusal(pair("good.npy", "good.npy") + "--alpha -1", {"--alpha", "> 0"});
  expect_refusal(pair("good.npy", "good.npy") + "--k many", {"--k", "whole number"});
  expect_refusal(pair("good.npy", "good.npy") + "--device tpu", {"tpu", "cpu"});
  expect_refusal("discrepncy a b", {"discrepncy", "did you mean 'discrepancy'"});
  expect_refusal("discrepancy", {"source"});
  write_text(folder_.path("c.json"), R"({"alignment": {"epsilom": 1}})");
  expect_refusal(pair("good.npy", "good.npy") + "--config " + folder_.path("c.json"),
                 {"c.json", "epsilom", "did you mean 'epsilon'"});
  write_text(folder_.path("c.json"), R"({"alignmet": {}})");
  expect_refusal(pair("good.npy", "good.npy") + "--config " + folder_.path("c.json"),
                 {"c.json", "alignmet", "did you mean 'alignment'"});
  write_text(folder_.path("c.json"), "{\"alignment\": \n{,}}");
  expect_refusal(pair("good.npy", "good.npy") + "--config " + folder_.path("c.json"),
                 {"c.json", "line 2"});
}

TEST_F(BadCalls, AGpuThatIsNotThereIsSaidInOneSentence) {
  if (devices().size() > 1) GTEST_SKIP() << "this build has a CUDA device";
  expect_refusal(pair("good.npy", "good.npy") + "--device cuda", {"--device cuda", "--device cpu"});
}

TEST_F(BadCalls, AFolderThatCannotBeWrittenIsNamed) {
  expect_refusal(pair("good.npy", "good.npy") + "--gradients " + folder_.path("good.npy") + "/g",
                 {"good.npy/g"});
}

TEST(Program, HelpAndVersionSucceed) {
  EXPECT_EQ(run_program("--help").code, 0);
  EXPECT_EQ(run_program("--version").code, 0);
  EXPECT_EQ(run_program("discrepancy --help").code, 0);
}

}  // namespace
}  // namespace cfaa::test
