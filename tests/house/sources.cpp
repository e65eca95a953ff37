#include "tests/house/sources.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "tests/paths.h"

namespace cfaa::test {
namespace {

namespace fs = std::filesystem;

constexpr std::array kTopFolders = {"host",  "cuda",    "kernels", "tools", "tests",
                                    "bench", "configs", "docs",    "python"};
constexpr std::array kTopFiles = {"CMakeLists.txt", "CMakePresets.json", "README.md",
                                  "CHANGELOG.md"};

bool is_left_out(const std::string& path) {
  return path.starts_with("tests/house/") || path.starts_with("tests/fuzz/corpus/") ||
         (path.starts_with("tests/fixtures/") && !path.ends_with(".py") && !path.ends_with(".md"));
}

SourceFile read(const fs::path& file, const std::string& path) {
  SourceFile source{path, {}};
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) source.lines.push_back(line);
  return source;
}

std::vector<SourceFile> read_all() {
  const fs::path root = source_path();
  std::vector<SourceFile> files;
  for (const char* name : kTopFiles) {
    if (fs::exists(root / name)) files.push_back(read(root / name, name));
  }
  for (const char* top : kTopFolders) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (!entry.is_regular_file() || is_left_out(path)) continue;
      if (path.find("__pycache__") != std::string::npos) continue;
      files.push_back(read(entry.path(), path));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

bool ends_with_any(const std::string& path, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

}  // namespace

const std::vector<SourceFile>& source_files() {
  static const std::vector<SourceFile> files = read_all();
  return files;
}

bool is_doc(const SourceFile& file) {
  return ends_with_any(file.path, {".md"});
}

bool is_code(const SourceFile& file) {
  return ends_with_any(file.path, {".h", ".cpp", ".cu", ".cuh"});
}

std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a continuation byte of UTF-8
  }));
}

}  // namespace cfaa::test
