#pragma once

// Golden lines of the text tests: small ones in tests/fixtures/text, all of them in CFAA_FIXTURES.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "tests/paths.h"

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
  return fixture_path("text/" + name);
}

}  // namespace cfaa::test
