// docs/examples, as they stand there.

#include <array>
#include <cstdio>
#include <filesystem>

#include "tests/paths.h"
#include "tests/run/small_runs.h"

namespace cfaa::test {
namespace {

// What an example prints, and then its exit code.
std::string output_of(const std::string& example, const std::string& arguments = "") {
  const std::filesystem::path program =
      std::filesystem::path(program_path()).parent_path() / ("example_" + example);
  std::FILE* pipe = ::popen((program.string() + " " + arguments + " 2>/dev/null").c_str(), "r");
  std::string text;
  std::array<char, 4096> piece{};
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), count);
  }
  return text + "exit " + std::to_string(WEXITSTATUS(::pclose(pipe)));
}

TEST(Examples, LossesPrintsBothLossesAndTheirGradients) {
  const std::string text = output_of("losses");

  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("vertical loss   0.")) << text;
  EXPECT_NE(text.find("horizontal loss "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("exit 0")) << text;
}

using ExamplesOnData = SmallRuns;

TEST_F(ExamplesOnData, RecommendTrainsAndPrintsLists) {
  const std::string first = output_of("recommend", path("data") + " " + path("run"));
  const std::string again = output_of("recommend", path("data") + " " + path("run"));

  EXPECT_NE(first.find("\nu100:  i1"), std::string::npos) << first;
  EXPECT_TRUE(first.ends_with("exit 0")) << first;
  EXPECT_EQ(again, first);
}

}  // namespace
}  // namespace cfaa::test
