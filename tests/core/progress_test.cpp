#include "host/core/terminal/progress.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "host/core/log.h"
#include "host/core/terminal/quantity.h"
#include "host/core/terminal/terminal.h"
#include "tests/pseudo_terminal.h"
#include "tests/temporary_folder.h"

namespace cfaa {
namespace {

using test::on_terminal;
using test::Screen;

ProgressMoment training() {
  ProgressMoment moment;
  moment.label = "training";
  moment.unit = {"step"};
  moment.total = 10000;
  moment.done = 4200;
  moment.seconds = 60;
  moment.note = "loss 0.6931, L_C 0.3500 + 0.3431, L_O 0.0123, L_A 0.4567";
  return moment;
}

void wait_for_a_drawing() {
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
}

// Draws a few times, as training does.
void work_for_a_while() {
  Progress progress("training", 10000, {"step"});
  for (int i = 0; i < 4; ++i) {
    progress.note("loss 0.6931, L_C 0.3500 + 0.3431, L_O 0.0123, L_A 0.4567");
    wait_for_a_drawing();
    progress.advance(2500);
  }
  progress.finish();
}

TEST(Progress, ALineFitsIntoEveryWidth) {
  for (int columns = 1; columns <= 200; ++columns) {
    EXPECT_LE(progress_line(training(), columns).size(), static_cast<std::size_t>(columns));
  }
}

TEST(Progress, ANarrowLineKeepsWhatMattersMost) {
  EXPECT_EQ(progress_line(training(), 150),
            "training [============                  ]  42 % 4200 of 10000 steps, 70 steps/s, "
            "1:23 left, loss 0.6931, L_C 0.3500 + 0.3431, L_O 0.0123, L_A 0.4567");
  EXPECT_EQ(progress_line(training(), 80),
            "training  42 % 4200 of 10000 steps, 70 steps/s, 1:23 left, loss 0.6931");
  EXPECT_EQ(progress_line(training(), 48), "training  42 % 4200 of 10000 steps, 1:23 left");
  EXPECT_EQ(progress_line(training(), 40), "training  42 % 4200 of 10000 steps");
}

TEST(Progress, RateAndTimeLeftCountWhatThisProcessDid) {
  ProgressMoment moment = training();
  moment.resumed = 4000;
  moment.seconds = 10;
  moment.note = "";

  EXPECT_EQ(progress_line(moment, 0), "training  42 % 4200 of 10000 steps, 20 steps/s, 4:50 left");
}

TEST(Progress, RightAfterAResumeNoRateIsMadeUp) {
  ProgressMoment moment = training();
  moment.resumed = moment.done;
  moment.seconds = 1;
  moment.note = "";

  EXPECT_EQ(progress_line(moment, 0), "training  42 % 4200 of 10000 steps, 0:01");
}

TEST(Progress, IsNotAHundredBeforeItIsDone) {
  ProgressMoment moment = training();
  moment.done = 9999;

  EXPECT_NE(progress_line(moment, 0).find(" 99 %"), std::string::npos);
}

TEST(Progress, BytesAreShownInMegabytes) {
  ProgressMoment moment;
  moment.label = "reading source";
  moment.unit = {"MB", 1e-6};
  moment.done = 12'300'000;
  moment.seconds = 3;

  EXPECT_EQ(progress_line(moment, 0), "reading source 12.3 MB, 4.10 MB/s, 0:03");
}

TEST(Progress, NeverWrapsOnATerminalOf80Or40Columns) {
  for (const int columns : {80, 40}) {
    const Screen screen = on_terminal(columns, work_for_a_while);

    EXPECT_FALSE(screen.wrapped) << screen.bytes;
    ASSERT_EQ(screen.lines.size(), 1u) << screen.bytes;
    EXPECT_TRUE(screen.lines[0].starts_with("training ")) << screen.lines[0];
    EXPECT_NE(screen.lines[0].find("100 %"), std::string::npos) << screen.lines[0];
  }
}

TEST(Progress, FollowsATerminalThatIsMadeNarrower) {
  const Screen screen = on_terminal(120, [] {
    Progress progress("training", 100, {"step"});
    wait_for_a_drawing();
    progress.advance(50);
    winsize narrow{};
    narrow.ws_col = 40;
    narrow.ws_row = 24;
    ::ioctl(STDERR_FILENO, TIOCSWINSZ, &narrow);
    wait_for_a_drawing();
    progress.advance(50);
    progress.finish();
  });
  // What was drawn before has become three rows, of which the first is found and erased.
  const std::size_t up = screen.bytes.find("\033[2A\r\033[J");
  ASSERT_NE(up, std::string::npos) << screen.bytes;

  EXPECT_FALSE(test::render(screen.bytes.substr(up), 40).wrapped) << screen.bytes;
}

TEST(Progress, AMessageDoesNotLandInTheMiddleOfTheBar) {
  const Screen screen = on_terminal(80, [] {
    Progress progress("training", 100, {"step"});
    wait_for_a_drawing();
    progress.advance(50);
    log_info("a message");
    wait_for_a_drawing();
    progress.advance(50);
  });

  ASSERT_EQ(screen.lines.size(), 2u) << screen.bytes;
  EXPECT_EQ(screen.lines[0], "a message");
  EXPECT_TRUE(screen.lines[1].starts_with("training ")) << screen.lines[1];
}

TEST(Progress, IsSilentWhereTheLogIsQuiet) {
  const Screen screen = on_terminal(80, [] {
    log_quietly();
    log_info("a message");
    work_for_a_while();
    log_warning("this is heard");
  });

  ASSERT_EQ(screen.lines.size(), 1u) << screen.bytes;
  EXPECT_EQ(screen.lines[0], "warning: this is heard");
}

TEST(Wrapped, BreaksAtSpacesAndIndentsWhatFollows) {
  EXPECT_EQ(wrapped("one two three four", 9), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("one two", 7), "one two");
  EXPECT_EQ(wrapped("a    much longer", 8, 4), "a\n    much\n    longer");
  EXPECT_EQ(wrapped("été été", 5), "été\n  été") << "columns are characters, not bytes";
}

TEST(Wrapped, KeepsAWordThatIsTooLongAndALineThatGoesToAFile) {
  EXPECT_EQ(wrapped("a_path/that_is/long x", 8), "a_path/that_is/long\n  x");
  EXPECT_EQ(wrapped("one two three four", 0), "one two three four");
}

TEST(Log, ALongMessageIsBrokenAtWordsOnATerminal) {
  const Screen screen =
      on_terminal(40, [] { log_info("stopped early: NDCG@10 did not improve in 20 validations"); });

  EXPECT_FALSE(screen.wrapped) << screen.bytes;
  ASSERT_EQ(screen.lines.size(), 2u) << screen.bytes;
  EXPECT_EQ(screen.lines[1], "  in 20 validations");
}

TEST(Log, AFileKeepsMessagesThatStandardErrorDoesNotShow) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("log");
  on_terminal(80, [&] {
    log_to_file(path);
    log_quietly();
    log_info("a message");
    log_warning("beware");
  });

  const std::string text = test::read_text(path);
  EXPECT_NE(text.find(" info: a message\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" warning: beware\n"), std::string::npos) << text;
}

TEST(Log, ColoursAWarningOnATerminalUnlessNoColorIsSet) {
  ::setenv("TERM", "xterm", 1);
  const auto warn = [] { log_warning("beware"); };
  ::unsetenv("NO_COLOR");
  const std::string coloured = on_terminal(80, warn).bytes;
  ::setenv("NO_COLOR", "1", 1);
  const std::string plain = on_terminal(80, warn).bytes;
  ::unsetenv("NO_COLOR");

  EXPECT_NE(coloured.find('\033'), std::string::npos);
  EXPECT_EQ(plain, "warning: beware\r\n");
}

TEST(Quantity, CountsHaveASingularAndAPlural) {
  EXPECT_EQ(counted(1, "user"), "1 user");
  EXPECT_EQ(counted(0, "user"), "0 users");
  EXPECT_EQ(counted(2, "user"), "2 users");
  EXPECT_EQ(counted(2, "entry", "entries"), "2 entries");
}

TEST(Quantity, ShortNumbersHaveThreeDigitsAndNoExponent) {
  EXPECT_EQ(short_number(10270), "10.3k");
  EXPECT_EQ(short_number(999.4), "999");
  EXPECT_EQ(short_number(999.6), "1.00k");
  EXPECT_EQ(short_number(1.234e6), "1.23M");
  EXPECT_EQ(short_number(0.5234), "0.52");
  EXPECT_EQ(short_number(9.996), "10.0");
  EXPECT_EQ(short_number(7), "7");
}

}  // namespace
}  // namespace cfaa
