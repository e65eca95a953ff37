// Kills, a full disk, inputs that cannot be read: the old or the new state is there, never a third.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string_view>
#include <thread>

#include "host/core/error.h"
#include "tests/data/raw_reviews.h"
#include "tests/paths.h"
#include "tests/program.h"
#include "tests/refusal.h"

namespace cfaa::test {
namespace {

using Files = std::map<std::string, std::string>;

int staging_left(const std::string& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += entry.path().filename().string().find(".cfaa-") != std::string::npos;
  }
  return count;
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    write_text(s_, as_json_2014(random_reviews(20000, 300, 200, 1, "s")));
    write_text(t_, as_json_2014(random_reviews(20000, 300, 200, 2, "t")));
  }
  std::string command(int seed, const std::string& out) {
    return fmt::format("prepare --source {} --target {} --out {} --seed {} --force --threads 2", s_,
                       t_, out, seed);
  }

  TemporaryFolder folder_;
  const std::string s_ = folder_.path("s"), t_ = folder_.path("t"), out_ = folder_.path("data");
};

// Starts the program and returns its process.
pid_t start(const std::string& arguments) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 1);
    ::dup2(null, 2);
    const std::string line = "exec " + program_path() + " " + arguments;
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  return child;
}

TEST_F(Faults, KilledAtAnyMomentTheOldOrTheNewStateIsThere) {
  using Clock = std::chrono::steady_clock;
  Files state[2];
  for (const int seed : {1, 0}) {
    ASSERT_EQ(run_program(command(seed, out_)).code, 0);
    state[seed] = files_of(out_);
  }
  const auto before = Clock::now();
  ASSERT_EQ(run_program(command(0, out_)).code, 0);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - before);
  std::mt19937 random(7);
  int killed = 0, replaced = 0, current = 0;

  for (int round = 0; round < 50; ++round) {
    const int next = 1 - current;
    const pid_t child = start(command(next, out_));
    std::this_thread::sleep_for(whole * static_cast<int>(random() % 1200) / 1000);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);

    const Files now = files_of(out_);
    ASSERT_TRUE(now == state[current] || now == state[next]) << "round " << round;
    if (now == state[next]) current = next, ++replaced;
  }

  RecordProperty("killed", killed);
  RecordProperty("replaced", replaced);
  std::cout << "killed " << killed
            << " of 50 runs before they ended; the new state was there after " << replaced << "\n";
  EXPECT_GT(killed, 10);
  ASSERT_EQ(run_program(command(0, out_)).code, 0);
  EXPECT_EQ(files_of(out_), state[0]);
  EXPECT_EQ(staging_left(folder_.path()), 0);
}

TEST_F(Faults, AFullDiskIsSaidAndLeavesTheOldState) {
  const std::string disk = folder_.path("disk");
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=300k") != 0) {
    GTEST_SKIP() << "a small tmpfs cannot be mounted here";
  }
  const std::string small_s = folder_.path("small_s"), small_t = folder_.path("small_t");
  write_text(small_s, as_json_2014(random_reviews(300, 10, 10, 1, "s")));
  write_text(small_t, as_json_2014(random_reviews(300, 10, 10, 2, "t")));
  run_prepare({small_s}, {small_t}, disk + "/data");
  const Files before = files_of(disk + "/data");

  const Outcome outcome = run_program(command(0, disk + "/data"));

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("No space left"), std::string::npos) << outcome.err;
  EXPECT_EQ(files_of(disk + "/data"), before);
  EXPECT_EQ(staging_left(disk), 0);
  ::umount(disk.c_str());
}

TEST_F(Faults, ADiskWithoutRoomForWhatIsPutAsideIsSaidAndLeavesTheOldState) {
  ASSERT_EQ(run_program(command(1, out_)).code, 0);
  const Files before = files_of(out_);
  write_text(s_, gzip_members(read_text(s_)));

  const Outcome outcome = run_program(command(0, out_) + " --memory 0", "ulimit -f 100; ");

  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--memory leaves no room for"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("File too large"), std::string::npos) << outcome.err;
  EXPECT_EQ(files_of(out_), before);
  EXPECT_EQ(staging_left(folder_.path()), 0);
}

// Writes everything that the reader takes, so many bytes at once, then closes.
void feed(int fd, std::string_view text, std::size_t at_once = std::string_view::npos) {
  while (!text.empty()) {
    const ssize_t done = ::write(fd, text.data(), std::min(at_once, text.size()));
    if (done <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  ::close(fd);
}

TEST_F(Faults, AFifoIsReadLikeAFile) {
  const std::string fifo = folder_.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  run_prepare({s_}, {t_}, out_);
  std::thread writer([&] {
    const std::string text = read_text(s_);
    const int fd = ::open(fifo.c_str(), O_WRONLY);
    feed(fd, text, 777);
  });

  run_prepare({fifo}, {t_}, folder_.path("from_fifo"));
  writer.join();

  EXPECT_EQ(files_of(folder_.path("from_fifo"), {"prepare.json"}),
            files_of(out_, {"prepare.json"}));
}

TEST_F(Faults, StandardInputIsReadLikeAFile) {
  run_prepare({s_}, {t_}, out_);

  for (const std::string name : {"/dev/stdin", "-"}) {
    const std::string out = folder_.path("from_stdin");
    const Outcome outcome =
        run_program(fmt::format("prepare --source {} --target {} --out {} --force", name, t_, out),
                    "cat " + s_ + " | ");

    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(files_of(out, {"prepare.json"}), files_of(out_, {"prepare.json"}));
  }
}

TEST_F(Faults, InputsThatCannotBeReadAreNamedAndLeaveNothing) {
  const auto says = [&](const std::string& path, const std::string& reason) {
    const std::string error = error_of([&] { run_prepare({s_}, {path}, out_); });
    EXPECT_NE(error.find(path), std::string::npos) << error;
    EXPECT_NE(error.find(reason), std::string::npos) << error;
    EXPECT_FALSE(std::filesystem::exists(out_));
    EXPECT_EQ(staging_left(folder_.path()), 0);
  };
  says(folder_.path("absent"), "cannot be opened: No such file");
  says(folder_.path(), "is a directory");
  says("/proc/self/mem", "cannot be read: Input/output error");
}

TEST_F(Faults, AnInputThatVanishesDuringTheRunEndsItCleanly) {
  // The source is a FIFO that feeds slowly; meanwhile the target's file goes.
  const std::string fifo = folder_.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] {
    const std::string text = read_text(s_);
    const int fd = ::open(fifo.c_str(), O_WRONLY);
    EXPECT_GT(::write(fd, text.data(), 50000), 0);
    std::filesystem::remove(t_);
    feed(fd, std::string_view(text).substr(50000));
  });

  const std::string error = error_of([&] { run_prepare({fifo}, {t_}, out_); });
  writer.join();

  EXPECT_NE(error.find(t_ + ": cannot be opened"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(out_));
  EXPECT_EQ(staging_left(folder_.path()), 0);
}

TEST_F(Faults, AnInputThatChangesDuringTheRunIsNamedAndLeavesNothing) {
  // The target is a FIFO, opened once the source is read; then the source changes in place.
  const std::string fifo = folder_.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] {
    const std::string text = read_text(t_);
    const int fd = ::open(fifo.c_str(), O_WRONLY);
    const int source = ::open(s_.c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(source, " ", 1, 0), 1);
    ::close(source);
    feed(fd, text);
  });

  const std::string error = error_of([&] { run_prepare({s_}, {fifo}, out_); });
  writer.join();

  EXPECT_NE(error.find(s_ + ": changed while it was read"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(out_));
  EXPECT_EQ(staging_left(folder_.path()), 0);
}

TEST_F(Faults, AMissingParentDirectoryIsNamed) {
  EXPECT_NE(
      error_of([&] { run_prepare({s_}, {t_}, folder_.path("no/where")); }).find("does not exist"),
      std::string::npos);
}

}  // namespace
}  // namespace cfaa::test
