#pragma once

// A subcommand of the program: one file in tools/, one function here. Each adds its flags to the
// application and a callback that does the work; user errors are thrown as cfaa::Error.

#include <CLI/CLI.hpp>
#include <string>

#include "host/core/options.h"

namespace cfaa::tools {

void add_discrepancy(CLI::App& app);

// Adds one flag per key of a configuration section: `sinkhorn_iterations` is --sinkhorn-iterations.
// The flags are applied by the returned function, after the configuration file has been read.
std::function<void()> add_option_flags(CLI::App& command, OptionSet set);

// Reads a configuration file; a syntax error names the file and the place. Empty path: {}.
nlohmann::json read_config(const std::string& path);

}  // namespace cfaa::tools
