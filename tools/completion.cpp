// cfaa_gpu completion bash|zsh: a script that completes commands, flags, choices and files. It is
// made from the program's own table of commands, so that it knows what this version knows.

#include <fmt/format.h>

#include "host/run/configuration.h"
#include "tools/command.h"
#include "tools/command_line/help.h"

namespace cfaa::tools {
namespace {

// What a command, or the program itself (name ""), can be followed by.
struct Completed {
  std::string name;
  std::vector<std::string> flags, valued;  // valued: those that a value follows
  std::vector<std::pair<std::string, std::vector<std::string>>> values;       // flag, its choices
  std::vector<std::pair<std::size_t, std::vector<std::string>>> positionals;  // place, its choices
};

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

// What --set takes, up to the value.
std::vector<std::string> configuration_keys() {
  std::vector<std::string> keys;
  Configuration configuration;
  for (const OptionSet& section : configuration.sections()) {
    for (const Option& option : section.options()) {
      keys.push_back(section.section() + "." + option.key + "=");
    }
  }
  return keys;
}

void add_options(Completed& completed, const CLI::App& app) {
  std::size_t place = 0;
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string> choices = choices_of(*option);
    for (const std::string& flag : flags_of(*option)) {
      completed.flags.push_back(flag);
      if (option->get_items_expected_max() == 0) continue;
      completed.valued.push_back(flag);
      if (!choices.empty()) completed.values.emplace_back(flag, choices);
      if (flag == "--set") completed.values.emplace_back(flag, configuration_keys());
    }
    if (!option->get_positional()) continue;
    if (!choices.empty()) completed.positionals.emplace_back(place, choices);
    ++place;
  }
}

std::vector<Completed> completed_commands(const CLI::App& app) {
  Completed program;
  std::vector<std::string> names;
  std::vector<Completed> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
    Completed completed;
    completed.name = command->get_name();
    add_options(completed, *command);
    add_options(completed, app);  // --quiet and --log-file are understood behind a command, too
    commands.push_back(std::move(completed));
  }
  add_options(program, app);
  program.positionals.emplace_back(0, names);
  commands.push_back(std::move(program));
  return commands;
}

std::string words(const std::vector<std::string>& list) {
  return fmt::format("'{}'", fmt::join(list, " "));
}

// bashcompinit stands on compinit, which a shell without a configuration has not run.
constexpr const char* kZshPrologue =
    R"((( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
autoload -Uz bashcompinit && bashcompinit
)";

// Runs in bash, and in zsh by its bashcompinit.
std::string script(const std::vector<Completed>& commands) {
  std::string flags, values, positionals;
  std::vector<std::string> names;
  for (const Completed& command : commands) {
    if (!command.name.empty()) names.push_back(command.name);
    flags += fmt::format("    '{}')\n      flags={}\n      valued={} ;;\n", command.name,
                         words(command.flags), words(command.valued));
    for (const auto& [flag, choices] : command.values) {
      values += fmt::format("      '{} {}') choices={} ;;\n", command.name, flag, words(choices));
    }
    for (const auto& [place, choices] : command.positionals) {
      positionals +=
          fmt::format("      '{} {}') choices={} ;;\n", command.name, place, words(choices));
    }
  }
  std::string text = R"(_cfaa_gpu() {
  local word=$2 previous=$3 command= flags= valued= choices= place=0 skip= i
  # bash takes the = of --flag=value for a word
  if [[ $word == = ]]; then word=; fi
  if [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      @NAMES@) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  case $command in
@FLAGS@  esac
  for ((++i; i < COMP_CWORD; ++i)); do
    if [[ -n $skip ]]; then
      skip=
    elif [[ " $valued " == *" ${COMP_WORDS[i]} "* ]]; then
      skip=1
    elif [[ ${COMP_WORDS[i]} != -* ]]; then
      ((++place))
    fi
  done
  if [[ " $valued " == *" $previous "* ]]; then
    case "$command $previous" in
@VALUES@    esac
  elif [[ $word == -* ]]; then
    choices=$flags
  else
    case "$command $place" in
@POSITIONALS@    esac
  fi
  # where nothing is to choose from, the shell completes files
  COMPREPLY=($(compgen -W "$choices" -- "$word"))
  if [[ $previous == --set ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -F _cfaa_gpu cfaa_gpu
)";
  const auto fill = [&](const std::string& mark, const std::string& with) {
    text.replace(text.find(mark), mark.size(), with);
  };
  fill("@NAMES@", fmt::format("{}", fmt::join(names, "|")));
  fill("@FLAGS@", flags);
  fill("@VALUES@", values);
  fill("@POSITIONALS@", positionals);
  return text;
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("completion", "print a script that completes commands in a shell");
  const auto shell = std::make_shared<std::string>();
  command
      ->add_option("shell", *shell,
                   "whose script; in bash: eval \"$(cfaa_gpu completion bash)\"; in zsh likewise")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([&app, shell] {
    if (*shell == "zsh") fmt::print("{}", kZshPrologue);
    fmt::print("{}", script(completed_commands(app)));
  });
}

}  // namespace cfaa::tools
