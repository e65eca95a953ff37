#include "tools/command_line/help.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace cfaa::tools {
namespace {

constexpr int kNarrowestPage = 40;
constexpr int kNames = 30;  // the column of names

std::string paragraph(const std::string& text) {
  return fmt::format("{}\n", fmt::join(wrap(text, page_width()), "\n"));
}

}  // namespace

int page_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kPageWidth;
  return std::clamp<int>(size.ws_col, kNarrowestPage, kPageWidth);
}

std::vector<std::string> wrap(const std::string& text, int width) {
  std::vector<std::string> lines;
  std::stringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.empty() &&
        lines.back().size() + 1 + word.size() <= static_cast<std::size_t>(width)) {
      lines.back() += ' ' + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string wrapped_entry(const std::string& name, const std::string& text, int indent, int width) {
  std::string entry = name;
  bool beside = static_cast<int>(name.size()) + 2 <= indent;
  for (const std::string& line : wrap(text, width - indent)) {
    const std::size_t filled = std::exchange(beside, false) ? name.size() : 0;
    if (filled == 0 && !entry.empty()) entry += '\n';
    entry += std::string(static_cast<std::size_t>(indent) - filled, ' ') + line;
  }
  return entry + '\n';
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::stringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = CLI::Formatter::make_usage(app, name);
  return '\n' + wrapped_entry("", usage, 0, page_width());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return paragraph(app->get_description());
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return app->get_footer().empty() ? "" : paragraph(app->get_footer());
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return wrapped_entry("  " + command->get_name(), command->get_description(), 16, page_width());
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return wrapped_entry("  " + make_option_name(option, is_positional) + make_option_opts(option),
                       make_option_desc(option), kNames, page_width());
}

// What follows a flag: its choices, or the kind of its value.
std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_items_expected_max() == 0) return "";
  const std::vector<std::string> choices = choices_of(*option);
  const std::string type = option->get_type_name();
  std::string shown = type.starts_with("INT") || type.starts_with("UINT") ? "N"
                      : type.starts_with("FLOAT")                         ? "X"
                                                                          : type;
  if (!choices.empty()) shown = fmt::format("{}", fmt::join(choices, "|"));
  if (shown.empty()) return "";
  const bool list = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  return ' ' + shown + (list ? " ..." : "");
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (!option->get_default_str().empty()) text += " (default: " + option->get_default_str() + ")";
  if (option->get_required() && !option->get_positional()) text += " (required)";
  return text;
}

}  // namespace cfaa::tools
