#pragma once

// Golden lines of the text tests: small ones in tests/fixtures/text, all of them in ../shared.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cfaa::test {

inline std::vector<nlohmann::json> read_json_lines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(nlohmann::json::parse(line));
  EXPECT_FALSE(rows.empty()) << path;
  return rows;
}

inline std::string text_data(const std::string& name) {
  return std::string(CFAA_TEST_DATA) + "/text/" + name;
}

inline std::string shared_file(const std::string& name) {
  return std::string(CFAA_SHARED_DIR) + "/" + name;
}

inline bool has_shared_text() {
  return std::filesystem::exists(shared_file("fixtures/text/sentences.en.jsonl"));
}

}  // namespace cfaa::test
