#pragma once

// A terminal for a child process, and what a person would see on it.

#include <functional>
#include <string>
#include <vector>

namespace cfaa::test {

struct Screen {
  std::string bytes;               // as written
  std::vector<std::string> lines;  // as they stand in the end, without escape codes
  bool wrapped = false;            // something was written beyond the last column
  int code = -1;                   // exit code of the child
};

// What is left on a screen of so many columns after `bytes`. Knows carriage return, new line,
// cursor up, erasing and colours.
Screen render(const std::string& bytes, int columns);

// Runs `work` in a child whose standard error is a terminal of so many columns.
Screen on_terminal(int columns, const std::function<void()>& work);

// Runs the program so, its standard output being the terminal too.
Screen run_program_on_terminal(int columns, const std::string& arguments);

}  // namespace cfaa::test
