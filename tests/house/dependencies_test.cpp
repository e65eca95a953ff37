// Dependencies between the folders point one way:
//
//   tools, python -> serve -> run -> train, eval, embed -> model -> signals -> encoder -> text ->
//   data -> ops -> device -> cpu | (kernels -> cuda) -> io -> core
//
// Every #include "..." of the project is checked against the tables below.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/house/sources.h"
#include "tests/paths.h"

namespace {

namespace fs = std::filesystem;
using cfaa::test::source_files;
using cfaa::test::source_path;
using cfaa::test::SourceFile;

// From the ground up: a folder may include itself and the storeys below its own.
const std::vector<std::set<std::string>> kStoreys = {
    {"host/core"},
    {"host/io"},
    {"cuda"},
    {"kernels"},
    {"host/cpu"},
    {"host/device"},
    {"host/ops"},
    {"host/data"},
    {"host/text"},
    {"host/encoder"},
    {"host/signals"},
    {"host/model"},
    {"host/embed", "host/eval"},
    {"host/train"},
    {"host/run"},
    {"host/serve"},
};

// Contracts that lie above what implements them: an op's header is implemented by host/cpu and
// kernels, the network of an encoder by cuda/tensorrt.
bool implements_contract(const std::string& file, const std::string& included) {
  if (file.starts_with("host/cpu/") || file.starts_with("kernels/")) {
    return included.starts_with("host/ops/");
  }
  return file.starts_with("cuda/tensorrt/") && included == "host/encoder/network.h";
}

std::size_t storey_of(const std::string& folder) {
  std::size_t storey = 0;
  while (storey < kStoreys.size() && !kStoreys[storey].count(folder)) ++storey;
  return storey;
}
// "host/io/npy.h" -> "host/core", "kernels/sum.cu" -> "kernels".
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
  const fs::path root = source_path();
  int checked = 0;
  for (const char* top : {"host", "cuda", "kernels"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file()) continue;
      const std::string file = fs::relative(entry.path(), root).string();
      const std::string folder = folder_of(file);
      ASSERT_LT(storey_of(folder), kStoreys.size()) << file << " lies in a folder without a storey";
      std::ifstream lines(entry.path());
      for (std::string line; std::getline(lines, line);) {
        const std::string included = included_by(line);
        if (included.empty() || !fs::exists(root / included)) continue;  // a library's header
        ++checked;

        const std::string other = folder_of(included);
        EXPECT_TRUE(other == folder || storey_of(other) < storey_of(folder) ||
                    implements_contract(file, included))
            << file << " may not include " << included;
      }
    }
  }

  EXPECT_GT(checked, 50) << "the includes were not found";
}

// Whoever links the library passes structs; JSON is what files and --json are made of.
TEST(House, AHeaderNeedsNoJsonLibrary) {
  const std::set<std::string> edge = {"host/io/json_file.h", "host/run/run_json.h"};
  for (const auto& file : cfaa::test::source_files()) {
    if (!file.path.starts_with("host/") || !file.path.ends_with(".h")) continue;
    for (const std::string& line : file.lines) {
      EXPECT_TRUE(line != "#include <nlohmann/json.hpp>" || edge.contains(file.path)) << file.path;
    }
  }
}

TEST(House, TheTopLevelIsAsDesigned) {
  const std::set<std::string> expected = {"CMakeLists.txt", "CMakePresets.json",
                                          "README.md",      "LICENSE",
                                          "cuda",           "kernels",
                                          "host",           "tools",
                                          "tests",          "bench",
                                          "configs",        "docs",
                                          "python",         "CHANGELOG.md",
                                          "build",          "run"};
  for (const auto& entry : fs::directory_iterator(source_path())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".")) continue;

    EXPECT_TRUE(expected.count(name)) << name << " does not belong at the top level";
  }
}

// cuda/libraries.cpp loads what would otherwise be linked, by name.
TEST(House, EveryFunctionOfCublasAndCusolverIsLoaded) {
  const std::regex call(R"(\b((cublas|cusolverDn)[A-Z]\w*)\()");
  std::set<std::string> called;
  std::string loaded;
  for (const SourceFile& file : source_files()) {
    if (!file.path.starts_with("cuda/") && !file.path.starts_with("kernels/")) continue;
    for (const std::string& line : file.lines) {
      if (file.path == "cuda/libraries.cpp") loaded += line;
      std::smatch found;
      const std::string code = line.substr(0, line.find("//"));
      if (std::regex_search(code, found, call)) called.insert(found[1]);
    }
  }
  called.erase("cusolverDnParams_t");  // a conversion operator

  EXPECT_GT(called.size(), 20u);
  for (const std::string& name : called) {
    const bool found = loaded.find("X(" + name + ")") != std::string::npos ||
                       loaded.find("X(" + name + "_v2)") != std::string::npos;
    EXPECT_TRUE(found) << name << " is called and not in the list of cuda/libraries.cpp";
  }
}

}  // namespace
