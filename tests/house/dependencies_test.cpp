// Dependencies between the folders point one way:
//
//   tools, bench -> train, eval -> model, text, data -> ops -> cpu | (kernels -> cuda) -> core
//
// Every #include "..." of the project is checked against the table below. host/ops headers are the
// contracts that host/cpu and kernels implement, so those two may include them.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"host/core", {"host/core"}},
    {"cuda", {"cuda", "host/core"}},
    {"kernels", {"kernels", "cuda", "host/core", "host/ops"}},
    {"host/cpu", {"host/cpu", "host/core", "host/ops"}},
    {"host/ops", {"host/ops", "host/cpu", "kernels", "cuda", "host/core"}},
    {"host/data", {"host/data", "host/core"}},
    {"host/text", {"host/text", "host/data", "host/ops", "host/core"}},
    {"host/model", {"host/model", "host/ops", "host/core"}},
    {"host/train",
     {"host/train", "host/model", "host/eval", "host/text", "host/data", "host/ops", "host/core"}},
    {"host/eval", {"host/eval", "host/model", "host/data", "host/ops", "host/core"}},
};

// "host/core/npy.h" -> "host/core", "kernels/sum.cu" -> "kernels".
std::string folder_of(const std::string& path) {
  const std::size_t first = path.find('/');
  if (first == std::string::npos) return "";
  if (path.substr(0, first) != "host") return path.substr(0, first);
  const std::size_t second = path.find('/', first + 1);
  return second == std::string::npos ? "host" : path.substr(0, second);
}

// What an #include "..." line names; "" for every other line.
std::string included_by(const std::string& line) {
  const std::size_t open = line.find('"');
  const std::size_t close = line.find('"', open + 1);
  if (open == std::string::npos || close == std::string::npos) return "";
  std::string before;
  for (const char c : line.substr(0, open)) {
    if (c != ' ') before += c;
  }
  return before == "#include" ? line.substr(open + 1, close - open - 1) : "";
}

TEST(House, IncludesPointOneWay) {
  const fs::path root = CFAA_SOURCE_DIR;
  int checked = 0;
  for (const char* top : {"host", "cuda", "kernels"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file()) continue;
      const std::string file = fs::relative(entry.path(), root).string();
      const auto rule = kMayInclude.find(folder_of(file));
      ASSERT_NE(rule, kMayInclude.end()) << file << " lies in a folder that has no rule";
      std::ifstream lines(entry.path());
      for (std::string line; std::getline(lines, line);) {
        const std::string included = included_by(line);
        if (included.empty() || !fs::exists(root / included)) continue;  // a library's header
        ++checked;

        EXPECT_TRUE(rule->second.count(folder_of(included)))
            << file << " may not include " << included;
      }
    }
  }

  EXPECT_GT(checked, 50) << "the includes were not found";
}

TEST(House, TheTopLevelIsAsDesigned) {
  const std::set<std::string> expected = {"CMakeLists.txt", "CMakePresets.json",
                                          "README.md",      "LICENSE",
                                          "cuda",           "kernels",
                                          "host",           "tools",
                                          "tests",          "bench",
                                          "configs",        "docs",
                                          "build",          "run"};
  for (const auto& entry : fs::directory_iterator(CFAA_SOURCE_DIR)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".")) continue;

    EXPECT_TRUE(expected.count(name)) << name << " does not belong at the top level";
  }
}

}  // namespace
