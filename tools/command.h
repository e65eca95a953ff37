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

namespace cfaa {
struct Configuration;
class StopSignal;
}  // namespace cfaa

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
void add_report(CLI::App& app);
void add_sentences(CLI::App& app);
void add_serve(CLI::App& app);
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

// Where a command's settings come from: a configuration, as an argument or by --config, and single
// values by --set. For every command that reads one.
struct ConfigFlags {
  std::string path;
  std::vector<std::string> assignments;

  void add_to(CLI::App& command, const std::string& help = "the configuration, JSON");
  // Puts the file's values, then those of --set, over the ones that are there.
  void apply_to(Configuration& configuration) const;
};

// Which runs are compared, by which metrics of which domain: `runs`, --metrics and --domain.
void add_comparison_flags(CLI::App& command, std::vector<std::string>& runs,
                          std::vector<std::string>& metrics, std::string& domain);

// Writes a line to stdout, or to stderr where stdout has the result itself; broken at words to the
// width of a terminal.
void print_line(const std::string& line, std::FILE* to = stdout);

// Ends a command that a signal stopped, with the exit code that a shell gives such a one; `what` is
// how far it came and how to resume.
[[noreturn]] void leave(const StopSignal& stop, const std::string& what);

// Writes machine output to stdout, one JSON value and a newline.
void print_json(const nlohmann::json& value);

}  // namespace cfaa::tools
