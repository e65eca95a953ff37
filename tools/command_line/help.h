#pragma once

// Help within the width of a page: descriptions are wrapped beside a column of names.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cfaa::tools {

// No line of help or of a table is wider, however wide the terminal is.
constexpr int kPageWidth = 100;

// Of standard output: the terminal's width where it is narrower than a page, else a page's.
int page_width();

// Words in lines of at most `width` characters; a longer word has a line of its own.
std::vector<std::string> wrap(const std::string& text, int width);

// Text in columns: `name` within the first `indent` characters (on a line of its own where it is
// longer), `text` wrapped beside it.
std::string wrapped_entry(const std::string& name, const std::string& text, int indent, int width);

// The choices that an option allows, where it allows only those: {"auto", "cuda", "cpu"}.
std::vector<std::string> choices_of(const CLI::Option& option);

// How CLI11 prints the help of the program and of its commands.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace cfaa::tools
