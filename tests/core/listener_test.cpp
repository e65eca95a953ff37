#include "host/core/terminal/listener.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/core/log.h"
#include "host/core/terminal/progress.h"

namespace cfaa {
namespace {

TEST(Listener, IsToldMessagesAndProgressWhichThenStayOffStandardError) {
  std::vector<std::string> messages;
  int64_t done = 0;
  testing::internal::CaptureStderr();

  set_listener(std::make_shared<Listener>(
      Listener{[&](const std::string& level, const std::string& message) {
                 messages.push_back(level + ": " + message);
               },
               [&](const ProgressMoment& moment) { done = moment.done; }}));
  log_info("one");
  log_warning("two");
  Progress progress("working", 7, {"step"});
  while (done == 0) progress.advance(1);
  progress.finish();
  set_listener(nullptr);
  log_info("three");

  EXPECT_EQ(messages, (std::vector<std::string>{"info: one", "warning: two"}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "three\n");
}

}  // namespace
}  // namespace cfaa
