#include "tests/pseudo_terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/paths.h"

namespace cfaa::test {
namespace {

void append_available(int terminal, std::string& bytes) {
  char block[4096];
  for (ssize_t count; (count = ::read(terminal, block, sizeof block)) > 0;) {
    bytes.append(block, static_cast<std::size_t>(count));
  }
}

// What the child writes until it ends. Its end of the terminal has to be open here too: where the
// last one is closed right after a write, Linux may answer a waiting read with an error and lose
// what was written.
std::string read_until_exit(int terminal, pid_t child, int& status) {
  ::fcntl(terminal, F_SETFL, O_NONBLOCK);
  std::string bytes;
  for (bool ended = false; !ended;) {
    pollfd ready{terminal, POLLIN, 0};
    ::poll(&ready, 1, 10);
    ended = ::waitpid(child, &status, WNOHANG) == child;
    append_available(terminal, bytes);
  }
  return bytes;
}

Screen run_child(int columns, bool output_too, const std::function<void()>& work) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = 24;
  int ours = -1, theirs = -1;
  if (::openpty(&ours, &theirs, nullptr, nullptr, &size) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ours);
    ::dup2(theirs, STDERR_FILENO);
    if (output_too) ::dup2(theirs, STDOUT_FILENO);
    ::close(theirs);
    work();
    ::_exit(0);
  }
  int status = 0;
  Screen screen = render(read_until_exit(ours, child, status), columns);
  ::close(theirs);
  ::close(ours);
  screen.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return screen;
}

}  // namespace

Screen render(const std::string& bytes, int columns) {
  Screen screen;
  screen.bytes = bytes;
  screen.lines.emplace_back();
  std::size_t row = 0, column = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::string>& lines = screen.lines;
    if (bytes[i] == '\r') {
      column = 0;
    } else if (bytes[i] == '\n') {
      if (++row == lines.size()) lines.emplace_back();
    } else if (bytes[i] == '\033') {
      const std::size_t end = bytes.find_first_of("ABCDHJKm", i);
      if (end == std::string::npos) break;
      const int count = std::max(1, std::atoi(bytes.c_str() + i + 2));
      if (bytes[end] == 'A') row -= std::min(row, static_cast<std::size_t>(count));
      if (bytes[end] == 'J') lines.resize(row + 1);
      if (bytes[end] == 'J' || bytes[end] == 'K') {
        lines[row].resize(std::min(column, lines[row].size()));
      }
      i = end;
    } else {
      if (column >= static_cast<std::size_t>(columns)) screen.wrapped = true;
      if (lines[row].size() <= column) lines[row].resize(column + 1, ' ');
      lines[row][column++] = bytes[i];
    }
  }
  if (screen.lines.back().empty()) screen.lines.pop_back();
  return screen;
}

Screen on_terminal(int columns, const std::function<void()>& work) {
  return run_child(columns, false, work);
}

Screen run_program_on_terminal(int columns, const std::string& arguments) {
  const std::string command = "exec " + program_path() + " " + arguments;
  return run_child(columns, true, [&] {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  });
}

}  // namespace cfaa::test
