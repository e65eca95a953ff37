#pragma once

// Where the tests find what they read. Paths are known to one file alone, so that the others
// compile to the same objects wherever the tree lies.

#include <string>

namespace cfaa::test {

std::string source_path(const std::string& inside = "");   // of the repository
std::string fixture_path(const std::string& inside = "");  // of tests/fixtures
std::string program_path();  // cfaa_gpu of this build, or the one that CFAA_PROGRAM names

// Golden data that is too large or not ours to ship: a folder with fixtures/, data/ and tokenizers/
// that the environment variable CFAA_FIXTURES names. "" where it is not set.
std::string golden_root();
std::string golden_path(const std::string& inside);

// Leaves a test that wants golden data which is not there, saying what to set.
#define CFAA_SKIP_WITHOUT_GOLDEN(inside)                           \
  if (!std::filesystem::exists(::cfaa::test::golden_path(inside))) \
  GTEST_SKIP() << "set CFAA_FIXTURES to a folder that holds " << (inside) << " to run this"

}  // namespace cfaa::test
