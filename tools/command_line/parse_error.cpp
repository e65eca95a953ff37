#include "tools/command_line/parse_error.h"

#include <fmt/format.h>

#include <regex>

#include "host/core/options.h"
#include "tools/command_line/help.h"

namespace cfaa::tools {
namespace {

// Every long flag of the program and of the commands that were named.
void collect_flags(const CLI::App& app, std::vector<std::string>& flags) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (const CLI::App* command : app.get_subcommands()) collect_flags(*command, flags);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::string unknown_word(const CLI::App& app, const std::string& word) {
  if (word.starts_with("-")) {
    std::vector<std::string> flags;
    collect_flags(app, flags);
    const std::string flag = word.substr(0, word.find('='));
    const std::string near = nearest_name(flag, flags);
    return flag +
           (app.get_subcommands().empty() ? " is not a flag" : " is not a flag of this command") +
           (near.empty() ? "; --help lists them" : "; did you mean " + near + "?");
  }
  if (!app.get_subcommands().empty()) return "'" + word + "' is one argument too many";
  const std::string near = nearest_name(word, command_names(app));
  return "'" + word + "' is not a command" +
         (near.empty() ? "; 'cfaa_gpu --help' lists them" : "; did you mean '" + near + "'?");
}

// "a, b or c"
std::string alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

// The option of that name, as CLI11 writes it in its messages.
const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands()) {
    if (const CLI::Option* found = find_option(*command, name)) return found;
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_name() == name || option->check_name(name)) return option;
  }
  return nullptr;
}

}  // namespace

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining(true);
  if (!extras.empty()) return unknown_word(app, extras.front());
  if (app.get_subcommands().empty()) return "give a command; 'cfaa_gpu --help' lists them";

  std::string message = error.what();
  while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
  std::smatch part;
  if (std::regex_match(message, part, std::regex("(\\S+): (.*) not in \\{.*\\}"))) {
    const CLI::Option* option = find_option(app, part[1]);
    const std::vector<std::string> choices =
        option == nullptr ? std::vector<std::string>{} : choices_of(*option);
    const std::string near = nearest_name(part[2], choices);
    return fmt::format("{} must be {}, and not '{}'{}", part[1].str(), alternatives(choices),
                       part[2].str(), near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  if (std::regex_match(message, part, std::regex("(\\S+): Value (.*) not in range (.*) to (.*)"))) {
    return fmt::format("{} must be from {} to {}, and not {}", part[1].str(), part[3].str(),
                       part[4].str(), part[2].str());
  }
  if (std::regex_match(message, part, std::regex("Could not convert: (\\S+) = (.*)"))) {
    return fmt::format("{} must be a number, and not '{}'", part[1].str(), part[2].str());
  }
  if (std::regex_match(message, part, std::regex("(\\S+): \\d+ required .* missing"))) {
    return part[1].str() + " needs a value; --help shows which";
  }
  return message + "; --help shows how the command is used";
}

}  // namespace cfaa::tools
