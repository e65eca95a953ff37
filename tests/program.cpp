#include "tests/program.h"

#include <sys/wait.h>

#include <cstdlib>

#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {

Outcome run_program(const std::string& arguments, const std::string& before) {
  const TemporaryFolder folder;
  const std::string command = before + program_path() + " " + arguments + " >" +
                              folder.path("out") + " 2>" + folder.path("err");
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_text(folder.path("out"));
  outcome.err = read_text(folder.path("err"));
  return outcome;
}

int kills_asked_for(int by_itself) {
  const char* asked = std::getenv("CFAA_TEST_KILLS");
  return asked == nullptr ? by_itself : std::atoi(asked);
}

}  // namespace cfaa::test
