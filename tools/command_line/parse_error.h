#pragma once

// A command line that cannot be understood, explained in one sentence that names the word at fault
// and the nearest one that is known.

#include <CLI/CLI.hpp>
#include <string>

namespace cfaa::tools {

std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cfaa::tools
