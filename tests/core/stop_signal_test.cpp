#include "host/core/terminal/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cfaa::test {
namespace {

TEST(AStopSignal, IsAWishTheFirstTime) {
  const StopSignal stop;
  EXPECT_FALSE(stop.requested());

  ::raise(SIGTERM);

  EXPECT_TRUE(stop.requested());
  EXPECT_EQ(stop.name(), "SIGTERM");
  EXPECT_EQ(stop.exit_code(), 143);
}

TEST(AStopSignal, EndsTheProcessTheSecondTime) {
  const pid_t child = ::fork();
  if (child == 0) {
    const StopSignal stop;
    ::raise(SIGINT);
    ::raise(SIGINT);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);

  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

TEST(AStopSignal, StaysIgnoredWhereTheCallerIgnoredIt) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  {
    const StopSignal stop;

    ::raise(SIGHUP);

    EXPECT_FALSE(stop.requested());
  }
  ::signal(SIGHUP, before);
}

}  // namespace
}  // namespace cfaa::test
