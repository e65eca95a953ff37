#pragma once

// Runs the program as a user would, through a shell.

#include <string>

namespace cfaa::test {

struct Outcome {
  int code = -1;
  std::string out, err;
};

// `arguments` as typed after the program's name, `before` as typed before it ("ulimit -v 1000; ").
Outcome run_program(const std::string& arguments, const std::string& before = "");

// How often a test kills the program: CFAA_TEST_KILLS, or as often as it says itself.
int kills_asked_for(int by_itself);

}  // namespace cfaa::test
