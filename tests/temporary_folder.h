#pragma once

// A folder of a test's own, gone with it.

#include <filesystem>
#include <string>

namespace cfaa::test {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name = "") const;

 private:
  std::filesystem::path folder_;
};

// The bytes of a file.
std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& content);

}  // namespace cfaa::test
