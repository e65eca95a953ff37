#include "host/io/mapped_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

constexpr std::size_t kBytes = 3 * 65536;  // several pages, whatever their size

std::string written_file(const test::TemporaryFolder& folder) {
  const std::string path = folder.path("reviews");
  std::ofstream(path) << std::string(kBytes, 'x');
  return path;
}

TEST(MappedFile, MovesWithItsPages) {
  const test::TemporaryFolder folder;
  MappedFile first(written_file(folder));
  const MappedFile second = std::move(first);
  ASSERT_EQ(second.bytes().size(), kBytes);
  EXPECT_EQ(second.bytes().back(), std::byte{'x'});
  EXPECT_TRUE(first.bytes().empty());
}

TEST(MappedFile, IsNamedWhenItIsCutShortWhileItIsRead) {
  const test::TemporaryFolder folder;
  const auto read_what_is_gone = [&] {
    explain_shortened_files();
    const MappedFile other(test::program_path());
    MappedFile opened(written_file(folder));
    const MappedFile file = std::move(opened);
    std::filesystem::resize_file(file.path(), 10);
    volatile std::byte last = file.bytes().back();
    (void)last;
  };
  EXPECT_EXIT(read_what_is_gone(), testing::ExitedWithCode(2), "reviews: was cut short");
}

}  // namespace
}  // namespace cfaa
