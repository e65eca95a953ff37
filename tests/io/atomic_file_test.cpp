#include "host/io/atomic_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "host/core/error.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

using test::read_text;
using test::TemporaryFolder;
using test::write_text;

std::size_t files_in(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(AtomicFile, AppearsWholeOnCommit) {
  const TemporaryFolder folder;
  const std::string large(3'000'000, 'x');
  AtomicFile file(folder.path("a"));
  file.write("begin ");
  file.write(large);

  EXPECT_FALSE(std::filesystem::exists(folder.path("a")));
  file.commit();

  EXPECT_EQ(read_text(folder.path("a")), "begin " + large);
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicFile, WithoutCommitTheOldContentStaysAndNothingElse) {
  const TemporaryFolder folder;
  write_text(folder.path("a"), "old");
  {
    AtomicFile file(folder.path("a"));
    file.write("new");
  }

  EXPECT_EQ(read_text(folder.path("a")), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicFile, AMissingFolderIsNamed) {
  try {
    AtomicFile file("/nonexistent/folder/a");
    FAIL() << "there is no such folder";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/folder/a"), std::string::npos);
  }
}

}  // namespace
}  // namespace cfaa
