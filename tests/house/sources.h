#pragma once

// The files of the repository as text, for the tests of the house.

#include <filesystem>
#include <string>
#include <vector>

namespace cfaa::test {

struct SourceFile {
  std::string path;  // from the top of the repository, with '/'
  std::vector<std::string> lines;
};

// Everything that people wrote: code, scripts, configurations and docs. Fixtures, fuzzing corpora,
// what a build or a run made, and this folder (which names what it forbids) are left out.
const std::vector<SourceFile>& source_files();

bool is_doc(const SourceFile& file);   // Markdown
bool is_code(const SourceFile& file);  // C++ or CUDA

// Code points, which is what columns are for the scripts used here.
std::size_t columns(const std::string& line);

}  // namespace cfaa::test
