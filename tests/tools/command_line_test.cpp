// The program's face: flags, help, completion and what it says to a mistyped word.

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/paths.h"
#include "tests/program.h"
#include "tests/pseudo_terminal.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {
namespace {

constexpr std::size_t kPageWidth = 100;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// As the program's own help lists them.
std::vector<std::string> commands() {
  std::vector<std::string> names;
  bool listed = false;
  for (const std::string& line : lines_of(run_program("--help").out)) {
    if (listed && line.starts_with("  ") && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    if (line.starts_with("Subcommands:")) listed = true;
  }
  return names;
}

std::string refusal(const std::string& arguments) {
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.code, 2) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  return outcome.err;
}

// What bash offers for the last word of a line.
std::vector<std::string> completions(const std::string& line) {
  const TemporaryFolder folder;
  write_text(folder.path("complete"), R"sh(
eval "$("$1" completion bash)"
read -ra COMP_WORDS <<< "$2"
[[ $2 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_cfaa_gpu cfaa_gpu "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
)sh");
  const std::string command = "bash " + folder.path("complete") + " " + program_path() + " '" +
                              line + "' >" + folder.path("out") + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_text(folder.path("out"));
  return lines_of(read_text(folder.path("out")));
}

TEST(CommandLine, HelpOfEveryCommandFitsAHundredColumns) {
  const std::vector<std::string> names = commands();
  ASSERT_GT(names.size(), 10u);
  for (const std::string& name : names) {
    const Outcome help = run_program(name + " --help");
    ASSERT_EQ(help.code, 0) << name;
    for (const std::string& line : lines_of(help.out)) {
      EXPECT_LE(line.size(), kPageWidth) << name << ": " << line;
    }
  }
}

TEST(CommandLine, HelpFollowsANarrowTerminal) {
  const Screen screen = run_program_on_terminal(70, "evaluate --help");

  EXPECT_EQ(screen.code, 0);
  EXPECT_FALSE(screen.wrapped) << screen.bytes;
}

TEST(CommandLine, AMistypedCommandGetsTheNearestName) {
  EXPECT_EQ(refusal("trian data"), "cfaa_gpu: 'trian' is not a command; did you mean 'train'?\n");
  EXPECT_EQ(refusal("--quiet trian"),
            "cfaa_gpu: 'trian' is not a command; did you mean 'train'?\n");
}

TEST(CommandLine, AMistypedFlagGetsTheNearestName) {
  EXPECT_EQ(refusal("stats data --jsno"),
            "cfaa_gpu: --jsno is not a flag of this command; did you mean --json?\n");
}

TEST(CommandLine, AMistypedValueGetsTheChoicesAndTheNearestOne) {
  EXPECT_EQ(refusal("sentences --lang eng"),
            "cfaa_gpu: --lang must be en or zh, and not 'eng'; did you mean 'en'?\n");
  EXPECT_EQ(refusal("train data --device cuad"),
            "cfaa_gpu: --device must be auto, cuda or cpu, and not 'cuad'; did you mean 'cuda'?\n");
  EXPECT_EQ(refusal("train data --threads 5000"),
            "cfaa_gpu: --threads must be from 0 to 1024, and not 5000\n");
  EXPECT_EQ(refusal("train data --from many"),
            "cfaa_gpu: --from must be a number, and not 'many'\n");
  EXPECT_EQ(refusal("train data --out"), "cfaa_gpu: --out needs a value; --help shows which\n");
}

TEST(CommandLine, QuietLeavesTheReportAlone) {
  const TemporaryFolder folder;
  const std::string rest = "synthesize --users 20 --items 20 --interactions 100 --out ";
  const Outcome loud = run_program(rest + folder.path("a"));
  const Outcome quiet = run_program(rest + folder.path("b") + " --quiet");

  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(lines_of(quiet.out).front(), lines_of(loud.out).front());
}

TEST(CommandLine, ALogFileKeepsErrors) {
  const TemporaryFolder folder;
  const std::string log = folder.path("log");
  run_program("stats " + folder.path("absent") + " --log-file " + log);

  EXPECT_NE(read_text(log).find(" error: "), std::string::npos) << read_text(log);
}

TEST(CommandLine, ALogFileThatCannotBeWrittenIsNamed) {
  const TemporaryFolder folder;
  write_text(folder.path("file"), "");
  const std::string log = folder.path("file") + "/log";

  EXPECT_EQ(refusal("stats data --log-file " + log),
            "cfaa_gpu: --log-file " + log +
                ": cannot be written; give a file in a folder that is there\n");
}

TEST(Completion, OffersCommandsFlagsAndChoices) {
  EXPECT_EQ(completions("cfaa_gpu tr"), std::vector<std::string>{"train"});
  EXPECT_EQ(completions("cfaa_gpu --quiet tr"), std::vector<std::string>{"train"});
  EXPECT_EQ(completions("cfaa_gpu train data --fr"),
            (std::vector<std::string>{"--from", "--fresh"}));
  EXPECT_EQ(completions("cfaa_gpu train data --device "),
            (std::vector<std::string>{"auto", "cuda", "cpu"}));
  EXPECT_EQ(completions("cfaa_gpu train --device = cu"), std::vector<std::string>{"cuda"});
  EXPECT_EQ(completions("cfaa_gpu baseline data --out x pop"),
            std::vector<std::string>{"popularity"});
  EXPECT_EQ(completions("cfaa_gpu train data --qu"), std::vector<std::string>{"--quiet"});
}

// An interactive zsh without a configuration, as somebody types into it; it is given up where what
// is awaited does not come.
TEST(Completion, CompletesInZsh) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "zsh is not installed";
  const TemporaryFolder folder;
  write_text(folder.path("complete"), R"sh(
zmodload zsh/zpty
zpty -b shell "zsh -f -i"
zpty -w shell "HOME=$3; PATH=${1:h}:\$PATH; eval \"\$($1 completion zsh)\"; echo rea''dy"
zpty -r -m shell out '*ready*'
zpty -w -n shell "${1:t} $2"$'\t'
zpty -r -m shell out "*$4*"
)sh");
  const std::pair<const char*, const char*> typed[] = {{"reco", "recommend"},
                                                       {"train data --devi", "--device"},
                                                       {"train data --device cu", "cuda"},
                                                       {"--quiet eval", "evaluate"}};
  for (const auto& [line, completed] : typed) {
    const std::string command = "timeout 60 zsh -f " + folder.path("complete") + " " +
                                program_path() + " '" + line + "' " + folder.path() + " " +
                                completed + " >/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << line;
  }
}

TEST(Completion, LeavesFilesToTheShell) {
  EXPECT_EQ(completions("cfaa_gpu train dat"), std::vector<std::string>{""});
  EXPECT_EQ(completions("cfaa_gpu train data --out ru"), std::vector<std::string>{""});
}

TEST(Completion, KnowsEveryCommandOfTheProgram) {
  EXPECT_EQ(completions("cfaa_gpu "), commands());
}

}  // namespace
}  // namespace cfaa::test
