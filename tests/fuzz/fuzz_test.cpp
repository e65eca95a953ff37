// The regression run of the fuzz targets: every file of the corpora, and a bounded number of
// mutations of them that are the same in every run.

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string_view>

#include "tests/fuzz/targets.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

std::vector<std::string> corpus(const std::string& target) {
  const std::filesystem::path folder =
      std::filesystem::path(source_path("tests/fuzz/corpus")) / target;
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    inputs.push_back(read_text(entry.path().string()));
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

// Bytes that mean something to one reader or another.
constexpr std::string_view kTelling("\"'\\{}[]:,\n\t\0u0 -9.eE", 20);

std::string mutated(std::string input, const std::vector<std::string>& others,
                    std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (int changes = 1 + static_cast<int>(below(4)); changes > 0; --changes) {
    const std::size_t at = below(input.size() + 1);
    switch (below(6)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(random());
        break;
      case 1:
        input.insert(at, 1, kTelling[below(kTelling.size())]);
        break;
      case 2:
        input.erase(at, below(9));
        break;
      case 3:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 4: {
        const std::string& other = others[below(others.size())];
        const std::size_t from = below(other.size() + 1);
        input.insert(at, other, from, below(40));
        break;
      }
      default:
        input.insert(at, input.substr(below(input.size() + 1), below(20)));
    }
  }
  return input;
}

class FuzzTarget : public testing::TestWithParam<fuzz::Target> {};

TEST_P(FuzzTarget, SurvivesItsCorpusAndMutationsOfIt) {
  const std::vector<std::string> inputs = corpus(GetParam().name);
  ASSERT_FALSE(inputs.empty());
  std::mt19937 random(1);

  for (const std::string& input : inputs) GetParam().run(input);
  for (int i = 0; i < 1000; ++i) {
    GetParam().run(mutated(inputs[random() % inputs.size()], inputs, random));
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, FuzzTarget, testing::ValuesIn(fuzz::kTargets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cfaa::test
