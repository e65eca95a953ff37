#include "host/io/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "host/core/error.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using test::error_of;
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
  const std::string message = error_of([] { AtomicFile file("/nonexistent/folder/a"); });

  EXPECT_NE(message.find("/nonexistent/folder/a"), std::string::npos) << message;
}

TEST(AtomicFile, AFolderIsNotWrittenTo) {
  const TemporaryFolder folder;

  const std::string message = error_of([&] { write_file(folder.path(), "text"); });

  EXPECT_NE(message.find("is a directory"), std::string::npos) << message;
}

TEST(AtomicFile, ALinkStaysAndLeadsToTheNewContent) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("elsewhere"));
  write_text(folder.path("elsewhere/a"), "old");
  fs::create_symlink("elsewhere/a", folder.path("link"));
  fs::create_symlink("link", folder.path("link to link"));

  write_file(folder.path("link to link"), "new");

  EXPECT_TRUE(fs::is_symlink(folder.path("link to link")));
  EXPECT_TRUE(fs::is_symlink(folder.path("link")));
  EXPECT_EQ(read_text(folder.path("elsewhere/a")), "new");
  EXPECT_EQ(files_in(folder.path("elsewhere")), 1u);
}

TEST(AtomicFile, ALinkToNothingMakesItsTarget) {
  const TemporaryFolder folder;
  fs::create_symlink("a", folder.path("link"));

  write_file(folder.path("link"), "new");

  EXPECT_TRUE(fs::is_symlink(folder.path("link")));
  EXPECT_EQ(read_text(folder.path("a")), "new");
}

TEST(AtomicFile, AFifoAndADeviceAreWrittenToAndStay) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = read_text(fifo); });

  write_file(fifo, "through the pipe");
  reader.join();
  fs::create_symlink("/dev/null", folder.path("null"));
  write_file(folder.path("null"), "gone");

  EXPECT_EQ(read, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_TRUE(fs::is_symlink(folder.path("null")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(AtomicFile, AMinusIsStdout) {
  testing::internal::CaptureStdout();
  write_file("-", "to the terminal");

  EXPECT_EQ(testing::internal::GetCapturedStdout(), "to the terminal");
  EXPECT_FALSE(fs::exists("-"));
}

TEST(AtomicFile, TheFilesPermissionsStay) {
  const TemporaryFolder folder;
  write_text(folder.path("a"), "old");
  fs::permissions(folder.path("a"), fs::perms(0600));

  write_file(folder.path("a"), "new");

  EXPECT_EQ(fs::status(folder.path("a")).permissions(), fs::perms(0600));
}

TEST(AtomicFile, SweepsWhatAKilledWriterLeftAndNothingElse) {
  const TemporaryFolder folder;
  write_text(folder.path("a.cfaa-x1y2z3.tmp"), "left by a killed writer");
  write_text(folder.path("b.cfaa-x1y2z3.tmp"), "of another file");
  write_text(folder.path("a.backup.tmp"), "somebody's");
  write_text(folder.path("a.cfaa-held00.tmp"), "being written");
  const int held = ::open(folder.path("a.cfaa-held00.tmp").c_str(), O_RDONLY);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);

  write_file(folder.path("a"), "new");

  EXPECT_FALSE(fs::exists(folder.path("a.cfaa-x1y2z3.tmp")));
  EXPECT_TRUE(fs::exists(folder.path("b.cfaa-x1y2z3.tmp")));
  EXPECT_TRUE(fs::exists(folder.path("a.backup.tmp")));
  EXPECT_TRUE(fs::exists(folder.path("a.cfaa-held00.tmp")));

  ::close(held);
  sweep_temporaries(folder.path());

  EXPECT_FALSE(fs::exists(folder.path("a.cfaa-held00.tmp")));
  EXPECT_FALSE(fs::exists(folder.path("b.cfaa-x1y2z3.tmp")));
  EXPECT_TRUE(fs::exists(folder.path("a.backup.tmp")));
}

TEST(AtomicFile, AWriterAtWorkIsNotSwept) {
  const TemporaryFolder folder;
  AtomicFile file(folder.path("a"));
  file.write("first");

  sweep_temporaries(folder.path());
  write_file(folder.path("a"), "second");
  file.commit();

  EXPECT_EQ(read_text(folder.path("a")), "first");
}

}  // namespace
}  // namespace cfaa
