// Stopped anywhere, embedding resumes to the same bytes; with anything changed it says so.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/data/raw_reviews.h"
#include "tests/embed/embed_case.h"

namespace cfaa::test {
namespace {

class EmbedResume : public testing::Test {
 protected:
  void SetUp() override {
    write_text(input_, as_lines(random_texts(300, 1)));
    request_.inputs = {input_};
    request_.out = folder_.path("expected.npy");
    request_.by_sentence = true;  // with ids beside
    request_.options.window = 40;
    request_.threads = 2;
    request_.force = true;
    HashedEngine engine;
    run_corpus(request_, engine);
    batches_ = engine.starts;
    expected_ = files();
    request_.out = folder_.path("v.npy");
  }

  // A run whose engine fails at its n-th batch.
  void stopped_run(int64_t n) {
    HashedEngine engine;
    engine.starts_left = n;
    run_corpus(request_, engine);
  }
  std::vector<std::string> files() {
    const std::string stem = request_.out.substr(0, request_.out.size() - 4);
    std::vector<std::string> all;
    for (const char* end : {".npy", ".ids.tsv", ".empty.txt"}) all.push_back(read_text(stem + end));
    return all;
  }
  void remove_all() {
    for (const char* name : {"v.npy", "v.ids.tsv", "v.empty.txt"}) {
      for (const char* end : {"", ".partial", ".journal", ".window"}) {
        std::filesystem::remove(folder_.path(std::string(name) + end));
      }
    }
  }

  TemporaryFolder folder_;
  const std::string input_ = folder_.path("a.txt");
  CorpusRequest request_;
  std::vector<std::string> expected_;
  int64_t batches_ = 0;
};

TEST_F(EmbedResume, StoppedAtAnyBatchTheFilesComeOutTheSame) {
  ASSERT_GT(batches_, 20);
  int64_t resumed = 0;
  int64_t stops = 0;
  for (int64_t n = 1; n <= batches_; n += 1 + n / 8, ++stops) {
    EXPECT_NE(error_of([&] { stopped_run(n); }), "no error");
    EXPECT_FALSE(exists(request_.out));

    HashedEngine engine;
    const EmbedReport report = run_corpus(request_, engine);

    EXPECT_EQ(files() == expected_, true) << n;
    resumed += report.resumed_at > 0;
    remove_all();
  }
  EXPECT_GT(resumed, stops / 4);
}

TEST_F(EmbedResume, StoppedOnRequestNothingIsEncodedTwice) {
  request_.options.window = 400;  // one window: it is stopped in the middle
  HashedEngine whole;
  const EmbedReport expected = run_corpus(request_, whole);
  remove_all();
  int64_t kept = 0;
  for (int64_t n = 2; n < whole.starts; n += 1 + n / 4) {
    HashedEngine stopped, rest;
    stopped.stop_at = n;
    request_.stop = &stopped.stop;

    const EmbedReport first = run_corpus(request_, stopped);
    request_.stop = nullptr;
    EXPECT_TRUE(first.stopped);
    EXPECT_FALSE(exists(request_.out));
    const EmbedReport second = run_corpus(request_, rest);

    EXPECT_FALSE(second.stopped);
    EXPECT_EQ(stopped.sequences + rest.sequences, whole.sequences) << n;
    EXPECT_EQ(second.counts.fields(), expected.counts.fields()) << n;
    EXPECT_EQ(files() == expected_, true) << n;
    EXPECT_FALSE(exists(request_.out + ".window"));
    kept += stopped.sequences;
    remove_all();
  }
  EXPECT_GT(kept, 0);
}

TEST_F(EmbedResume, WhatWasKeptOfAWindowIsNotTrusted) {
  request_.options.window = 400;
  HashedEngine stopped;
  stopped.stop_at = batches_ / 8;
  request_.stop = &stopped.stop;
  EXPECT_TRUE(run_corpus(request_, stopped).stopped);
  request_.stop = nullptr;
  const std::string kept = request_.out + ".window";
  std::string bytes = read_text(kept);
  ASSERT_GT(bytes.size(), 100u);
  bytes[50] ^= 1;
  write_text(kept, bytes);

  HashedEngine engine;
  run_corpus(request_, engine);

  EXPECT_EQ(files() == expected_, true);
}

TEST_F(EmbedResume, KilledTwentyTimesTheFilesComeOutTheSame) {
  std::mt19937 random(3);
  int killed = 0, rounds = 0;
  for (; killed < 20 && rounds < 400; ++rounds) {
    const pid_t child = ::fork();
    if (child == 0) {
      HashedEngine engine({.width = 12, .batch_tokens = 24});
      run_corpus(request_, engine);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    if (!WIFSIGNALED(status)) {
      ASSERT_EQ(files() == expected_, true) << rounds;
      remove_all();
    }
  }

  HashedEngine engine({.width = 12, .batch_tokens = 24});
  run_corpus(request_, engine);

  EXPECT_EQ(killed, 20);
  EXPECT_EQ(files() == expected_, true);
}

TEST_F(EmbedResume, ATornJournalLosesItsLastWindowOnly) {
  EXPECT_NE(error_of([&] { stopped_run(batches_ - 1); }), "no error");
  const std::string journal = read_text(request_.out + ".journal");
  std::vector<std::pair<std::string, std::string>> partial;
  for (const char* name : {"v.npy", "v.ids.tsv", "v.empty.txt"}) {
    const std::string path = folder_.path(std::string(name) + ".partial");
    partial.emplace_back(path, read_text(path));
  }
  std::vector<std::string> torn;
  for (std::size_t cut = 0; cut < journal.size(); cut += 997)
    torn.push_back(journal.substr(0, cut));
  torn.push_back(journal + "0123456789abcdef {}\n");
  torn.push_back(journal);
  torn.back()[journal.size() - 5] ^= 1;
  for (const std::string& text : torn) {
    remove_all();
    for (const auto& [path, content] : partial) write_text(path, content);
    write_text(request_.out + ".journal", text);

    HashedEngine engine;
    run_corpus(request_, engine);

    EXPECT_EQ(files() == expected_, true) << text.size();
  }
}

TEST_F(EmbedResume, KilledWhileFilesAreMovedTheNextRunMovesTheRest) {
  // As if the kill came between two renames: everything is written, some is in place.
  EXPECT_NE(error_of([&] { stopped_run(batches_ - 1); }), "no error");
  const std::string journal = request_.out + ".journal";
  const std::string kept = folder_.path("kept");
  std::filesystem::create_hard_link(journal, kept);  // put_in_place removes the other name
  HashedEngine engine;
  run_corpus(request_, engine);
  for (const std::size_t moved : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    const char* names[] = {"v.ids.tsv", "v.empty.txt", "v.npy"};
    for (std::size_t i = moved; i < 3; ++i) {
      std::filesystem::rename(folder_.path(names[i]), folder_.path(names[i]) + ".partial");
    }
    write_text(journal, read_text(kept));

    HashedEngine idle;
    const EmbedReport report = run_corpus(request_, idle);

    EXPECT_EQ(idle.sequences, 0);
    EXPECT_EQ(report.rows, static_cast<int64_t>(report.counts.sentences));
    EXPECT_EQ(files() == expected_, true) << moved;
    EXPECT_FALSE(exists(journal));
  }
}

TEST_F(EmbedResume, AChangedInputModelOrSettingIsRefusedByName) {
  EXPECT_NE(error_of([&] { stopped_run(batches_ - 1); }), "no error");
  const std::string journal = read_text(request_.out + ".journal");
  const auto refused = [&](const CorpusRequest& request, const Fields& identity,
                           const std::string& expected) {
    HashedEngine engine;
    const std::string error = error_of([&] { run_corpus(request, engine, 24, identity); });
    EXPECT_NE(error.find("the interrupted run had " + expected), std::string::npos) << error;
    EXPECT_NE(error.find("--fresh"), std::string::npos) << error;
    EXPECT_EQ(read_text(request_.out + ".journal"), journal);
  };
  refused(request_, {{"model", "other"}}, "model 'hashed', this one has 'other'");
  CorpusRequest changed = request_;
  changed.options.dtype = DType::f16;
  refused(changed, {{"model", "hashed"}}, "dtype 'float32', this one has 'float16'");
  changed = request_;
  changed.options.lang = Language::kChinese;
  refused(changed, {{"model", "hashed"}}, "lang 'en', this one has 'zh'");
  const std::string text = read_text(input_);
  write_text(input_, text + "more\n");
  refused(request_, {{"model", "hashed"}}, "input '");
  std::string same_size = text;
  same_size[same_size.size() - 3] ^= 1;
  write_text(input_, same_size);
  refused(request_, {{"model", "hashed"}}, "input '");
  write_text(input_, text);
  std::filesystem::resize_file(request_.out + ".partial", 200);
  HashedEngine engine;
  EXPECT_NE(error_of([&] { run_corpus(request_, engine); }).find("is shorter than"),
            std::string::npos);

  changed = request_;
  changed.fresh = true;
  run_corpus(changed, engine);

  EXPECT_EQ(files() == expected_, true);
}

TEST_F(EmbedResume, TwoRunsDoNotWriteTheSameFiles) {
  EXPECT_NE(error_of([&] { stopped_run(batches_ - 1); }), "no error");
  const int other = ::open((request_.out + ".journal").c_str(), O_RDWR);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);

  HashedEngine engine;
  const std::string error = error_of([&] { run_corpus(request_, engine); });

  EXPECT_NE(error.find("another run is writing"), std::string::npos) << error;
  ::close(other);
  run_corpus(request_, engine);
  EXPECT_EQ(files() == expected_, true);
}

TEST_F(EmbedResume, AnOldOutputStaysUntilTheNewOneIsWhole) {
  write_text(request_.out, "old");

  EXPECT_NE(error_of([&] { stopped_run(batches_ - 1); }), "no error");

  EXPECT_EQ(read_text(request_.out), "old");
}

TEST_F(EmbedResume, AFullDiskIsSaidAndTheRunGoesOnWhenThereIsRoom) {
  const std::string disk = folder_.path("disk");
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=24k") != 0) {
    GTEST_SKIP() << "a small tmpfs cannot be mounted here";
  }
  request_.out = disk + "/v.npy";
  HashedEngine engine;

  const std::string error = error_of([&] { run_corpus(request_, engine); });

  EXPECT_NE(error.find("No space left"), std::string::npos) << error;
  EXPECT_NE(error.find("resumes where it stopped"), std::string::npos) << error;
  EXPECT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=2m"), 0);
  const EmbedReport report = run_corpus(request_, engine);
  EXPECT_GT(report.resumed_at, 0);
  EXPECT_EQ(files() == expected_, true);
  ::umount(disk.c_str());
}

}  // namespace
}  // namespace cfaa::test
