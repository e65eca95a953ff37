#include "tests/paths.h"

#include <cstdlib>

namespace cfaa::test {

std::string source_path(const std::string& inside) {
  return std::string(CFAA_SOURCE_DIR) + "/" + inside;
}

std::string fixture_path(const std::string& inside) {
  return std::string(CFAA_TEST_FIXTURES) + "/" + inside;
}

std::string program_path() {
  const char* other = std::getenv("CFAA_PROGRAM");
  return other == nullptr ? CFAA_PROGRAM : other;
}

std::string golden_root() {
  const char* root = std::getenv("CFAA_FIXTURES");
  return root == nullptr ? "" : root;
}

std::string golden_path(const std::string& inside) {
  return golden_root() + "/" + inside;
}

}  // namespace cfaa::test
