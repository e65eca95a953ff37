// cfaa_gpu config: every key of the configuration with its value, what it may be and what it is
// for.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/train/run_config.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> assignments;
  bool print = false, json = false;
};

void run(const Arguments& arguments) {
  RunConfig config;
  config.read(read_config(arguments.config), arguments.config);
  for (const std::string& assignment : arguments.assignments) config.set(assignment);
  config.check();
  if (arguments.json) {
    print_json(config.to_json());
    return;
  }
  for (const OptionSet& section : config.sections()) {
    fmt::print("\n{}\n", section.section());
    for (const Option& option : section.options()) {
      fmt::print("  {:<24} {:<26} {} ({})\n", option.key, option.current().dump(), option.help,
                 option.allowed);
    }
  }
}

}  // namespace

void add_config(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("config", "show every key of the configuration, and check a file");
  command->add_option("config", arguments->config, "a configuration; its values are shown");
  command->add_option("--set", arguments->assignments, "section.key=value, over the configuration");
  command->add_flag("--print", arguments->print, "print them (the default)");
  command->add_flag("--json", arguments->json, "as a configuration file");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
