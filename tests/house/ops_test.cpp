// An op is whole: its contract in host/ops, an implementation for each device, and its test.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/paths.h"

namespace {

namespace fs = std::filesystem;
using cfaa::test::source_path;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Op {
  std::string name;
  bool has_implementations;  // of its own, rather than being made of other ops
};

// The headers of host/ops that declare something which runs on a device.
std::vector<Op> ops() {
  std::vector<Op> found;
  for (const auto& entry : fs::directory_iterator(source_path("host/ops"))) {
    const fs::path source = fs::path(entry.path()).replace_extension(".cpp");
    if (entry.path().extension() != ".h" || !fs::exists(source)) continue;
    if (!holds(text_of(entry.path()), "(Context& context")) continue;
    found.push_back({entry.path().stem().string(), holds(text_of(source), "CFAA_DISPATCH(")});
  }
  return found;
}

TEST(House, EveryOpHasItsTest) {
  for (const Op& op : ops()) {
    const std::string test = text_of(source_path("tests/ops/" + op.name + "_test.cpp"));

    EXPECT_TRUE(holds(test, "#include \"host/ops/" + op.name + ".h\"") &&
                holds(test, "CFAA_TEST_ON_DEVICES("))
        << "host/ops/" << op.name << ".h wants tests/ops/" << op.name
        << "_test.cpp, which runs it on every device";
  }
}

TEST(House, EveryOpIsWrittenForEveryDevice) {
  int implemented = 0;
  for (const Op& op : ops()) {
    if (!op.has_implementations) continue;
    ++implemented;

    EXPECT_TRUE(fs::exists(source_path("host/cpu/" + op.name + ".cpp"))) << op.name;
    EXPECT_TRUE(fs::exists(source_path("kernels/" + op.name + ".cu"))) << op.name;
  }

  EXPECT_GT(implemented, 10) << "the ops were not found";
}

TEST(House, AnOpIsDeclaredOnce) {
  for (const auto& entry : fs::directory_iterator(source_path("host/ops"))) {
    if (entry.path().extension() != ".h" || entry.path().stem() == "dispatch") continue;

    const std::string header = text_of(entry.path());

    EXPECT_FALSE(holds(header, "namespace cpu {") || holds(header, "namespace cuda {"))
        << entry.path().filename() << ": declare it by CFAA_OP (host/ops/dispatch.h)";
  }
}

}  // namespace
