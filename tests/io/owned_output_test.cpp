#include "host/io/owned_output.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "host/io/atomic_file.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

std::string refusal_to_write(const std::string& path, bool force = false) {
  return error_of([&] { check_output(path, "user_id\trank\n", force); });
}

TEST(CheckOutput, LetsThroughWhatIsNotThereAndWhatIsEmpty) {
  const TemporaryFolder folder;
  write_text(folder.path("empty"), "");
  fs::create_symlink("nowhere", folder.path("link"));

  EXPECT_EQ(refusal_to_write(folder.path("new")), "");
  EXPECT_EQ(refusal_to_write(folder.path("empty")), "");
  EXPECT_EQ(refusal_to_write(folder.path("link")), "");
}

TEST(CheckOutput, LetsStreamsThrough) {
  EXPECT_EQ(refusal_to_write("-"), "");
  EXPECT_EQ(refusal_to_write("/dev/null"), "");
}

TEST(CheckOutput, KnowsItsOwnTableByTheFirstLine) {
  const TemporaryFolder folder;
  write_text(folder.path("lists.tsv"), "user_id\trank\nu1\t1\n");

  EXPECT_EQ(refusal_to_write(folder.path("lists.tsv")), "");
}

TEST(CheckOutput, RefusesAForeignFileByNameUnlessForced) {
  const TemporaryFolder folder;
  write_text(folder.path("thesis.tex"), "\\begin{document}");
  write_text(folder.path("short"), "user");
  fs::create_symlink("thesis.tex", folder.path("link"));

  for (const std::string name : {"thesis.tex", "short", "link"}) {
    const std::string message = refusal_to_write(folder.path(name));
    EXPECT_NE(message.find(folder.path(name)), std::string::npos) << message;
    EXPECT_NE(message.find("--force"), std::string::npos) << message;
    EXPECT_EQ(refusal_to_write(folder.path(name), true), "");
  }
}

TEST(CheckOutput, RefusesADirectoryEvenIfForced) {
  const TemporaryFolder folder;

  EXPECT_NE(refusal_to_write(folder.path(), true).find("is a directory"), std::string::npos);
}

class OutputRecordTest : public testing::Test {
 protected:
  // Writes both files as a command would; the message of the refusal, or "".
  std::string write_both(bool force = false, const std::string& command = "export") {
    return error_of([&] {
      OutputRecord record(folder_.path("export.files.json"), command);
      record.claim({folder_.path("users.npy"), folder_.path("users.tsv")}, force);
      write_file(folder_.path("users.npy"), "the command's");
      write_file(folder_.path("users.tsv"), "the command's");
      record.complete();
    });
  }

  TemporaryFolder folder_;
};

TEST_F(OutputRecordTest, ACommandReplacesItsOwnFiles) {
  EXPECT_EQ(write_both(), "");
  EXPECT_EQ(write_both(), "");
}

TEST_F(OutputRecordTest, AForeignFileIsRefusedBeforeAnythingIsWritten) {
  write_text(folder_.path("users.tsv"), "a run's metrics");

  const std::string message = write_both();

  EXPECT_NE(message.find("users.tsv"), std::string::npos) << message;
  EXPECT_EQ(read_text(folder_.path("users.tsv")), "a run's metrics");
  EXPECT_FALSE(fs::exists(folder_.path("users.npy")));
  EXPECT_FALSE(fs::exists(folder_.path("export.files.json")));
}

TEST_F(OutputRecordTest, AForcedFileIsTheCommandsOwnFromThenOn) {
  write_text(folder_.path("users.tsv"), "a run's metrics");

  EXPECT_EQ(write_both(true), "");
  EXPECT_EQ(write_both(), "");
}

TEST_F(OutputRecordTest, AFileThatSomebodyChangedSinceIsForeign) {
  EXPECT_EQ(write_both(), "");
  write_text(folder_.path("users.npy"), "somebody else's work");

  EXPECT_NE(write_both().find("users.npy"), std::string::npos);
  EXPECT_EQ(read_text(folder_.path("users.npy")), "somebody else's work");
}

TEST_F(OutputRecordTest, AClaimOfAKilledCommandStands) {
  OutputRecord record(folder_.path("export.files.json"), "export");
  record.claim({folder_.path("users.npy"), folder_.path("users.tsv")}, false);
  write_text(folder_.path("users.npy"), "half of it was written, then came the kill");

  EXPECT_EQ(write_both(), "");
}

TEST_F(OutputRecordTest, AnotherCommandsFilesAreForeign) {
  EXPECT_EQ(write_both(), "");

  EXPECT_NE(write_both(false, "baseline").find("export.files.json"), std::string::npos);
}

TEST_F(OutputRecordTest, AForeignFileInTheRecordsPlaceIsRefused) {
  write_text(folder_.path("export.files.json"), "{\"my\": \"own\"}");

  EXPECT_NE(write_both().find("export.files.json"), std::string::npos);
  EXPECT_EQ(write_both(true), "");
}

TEST_F(OutputRecordTest, StreamsNeedNoRecord) {
  OutputRecord record(folder_.path("export.files.json"), "export");
  record.claim({"/dev/null", "-"}, false);
  record.complete();

  EXPECT_FALSE(fs::exists(folder_.path("export.files.json")));
}

}  // namespace
}  // namespace cfaa
