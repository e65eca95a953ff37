#pragma once

// A subcommand of the program: one file in tools/, one function here. Each adds its flags to the
// application and a callback that does the work; user errors are thrown as cfaa::Error.

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/options.h"

namespace cfaa::tools {

void add_baseline(CLI::App& app);
void add_bench(CLI::App& app);
void add_compare(CLI::App& app);
void add_completion(CLI::App& app);
void add_config(CLI::App& app);
void add_discrepancy(CLI::App& app);
void add_embed(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_export(CLI::App& app);
void add_prepare(CLI::App& app);
void add_recommend(CLI::App& app);
void add_sentences(CLI::App& app);
void add_stats(CLI::App& app);
void add_synthesize(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_train(CLI::App& app);

// --device and --threads, for every command that computes.
struct DeviceFlags {
  std::string device = "auto";
  int threads = 0;

  void add_to(CLI::App& command);
  std::unique_ptr<Context> make_context(uint64_t seed = 0) const;
};

// Adds one flag per key of a configuration section: `sinkhorn_iterations` is --sinkhorn-iterations.
// The returned function applies those that were given; call it after the configuration file has
// been read, so that flags win. Keys in `except` get no flag.
std::function<void()> add_option_flags(CLI::App& command, const OptionSet& set,
                                       const std::vector<std::string>& except = {});

// Reads a configuration file. Throws Error naming the file and the place of a syntax error, or a
// section that is none of prepare, embed, model, alignment, signals, train, eval. Empty path: {}.
nlohmann::json read_config(const std::string& path);

// Writes machine output to stdout, one JSON value and a newline.
void print_json(const nlohmann::json& value);

}  // namespace cfaa::tools
