#include "tests/temporary_folder.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "host/core/error.h"

namespace cfaa::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "cfaa_test_XXXXXX").string();
  CFAA_ASSERT(::mkdtemp(name.data()) != nullptr);
  folder_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TemporaryFolder::path(const std::string& name) const {
  return (name.empty() ? folder_ : folder_ / name).string();
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace cfaa::test
