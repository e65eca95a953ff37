// cfaa_gpu discrepancy zs.npy zt.npy, or run/: how far apart two embedding sets are, by both
// alignment losses and by a classifier that tells them apart.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/io/json_file.h"
#include "host/ops/alignment_config.h"
#include "host/run/configuration.h"
#include "host/run/directory/directory_kind.h"
#include "host/run/discrepancy.h"
#include "host/run/run_json.h"
#include "tools/command.h"
#include "tools/tables/discrepancy_report.h"

namespace cfaa::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Arguments {
  std::string source, target;  // two files; or a run, and nothing
  std::string data, precision = "float", loss = "both", gradients, intermediates;
  ConfigFlags config;
  DiscrepancyOptions options;
  DeviceFlags device;
  bool json = false;
};

// The settings of the configuration and of the flags, over those that are there. The fixtures'
// case.json has the alignment keys in `parameters`.
void apply_settings(Arguments& arguments, const std::function<void()>& apply_flags) {
  Configuration configuration;
  configuration.run.alignment = arguments.options.alignment;
  ConfigFlags config = arguments.config;
  const json file = config.path.empty() ? json() : read_json(config.path);
  if (file.is_object() && file.contains("parameters")) {
    alignment_option_set(configuration.run.alignment)
        .read(file["parameters"], config.path, {"name"});
    config.path.clear();
  }
  config.apply_to(configuration);
  arguments.options.alignment = configuration.run.alignment;
  apply_flags();
}

void run_on_run(Arguments& arguments, const std::function<void()>& apply_flags) {
  if (!arguments.target.empty()) {
    throw Error(fmt::format("{}: is a run, which has both domains; '{}' is one argument too many",
                            arguments.source, arguments.target));
  }
  if (!arguments.gradients.empty() || !arguments.intermediates.empty()) {
    throw Error(
        fmt::format("{}: is a run, which has two pairs of sets; for --gradients and "
                    "--intermediates export it, and give two of its files",
                    arguments.source));
  }
  const auto context = arguments.device.make_context();
  Run trained(*context, arguments.source, arguments.data);
  arguments.options.alignment = trained.config().alignment;
  apply_settings(arguments, apply_flags);
  const RunDiscrepancy found = compare_domains(*context, trained, arguments.options);
  if (!arguments.json) return print_run_discrepancy(arguments.source, found);
  json fields = to_json(found);
  fields["run"] = arguments.source;
  print_json(fields);
}

void run_on_files(Arguments& arguments, const std::function<void()>& apply_flags) {
  if (arguments.target.empty()) {
    if (fs::is_directory(arguments.source)) require_run(arguments.source);
    throw Error(
        fmt::format("{}: is not a run; give two .npy files, source and target, or the "
                    "directory that train wrote",
                    arguments.source));
  }
  apply_settings(arguments, apply_flags);
  const auto context = arguments.device.make_context();
  const Discrepancy found =
      compare_embedding_files(*context, arguments.source, arguments.target, arguments.options);
  if (!arguments.json) return print_discrepancy(found);
  print_json(to_json(found));
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  DiscrepancyOptions& options = arguments.options;
  options.vertical = arguments.loss != "horizontal";
  options.horizontal = arguments.loss != "vertical";
  if (arguments.precision == "double") options.precision = ComparePrecision::f64;
  options.gradients = arguments.gradients;
  options.intermediates = arguments.intermediates;
  if (RunDirectory(arguments.source).is_run()) {
    // A run is one argument: what follows it is the configuration.
    if (arguments.target.ends_with(".json") && arguments.config.path.empty()) {
      arguments.config.path = std::exchange(arguments.target, "");
    }
    run_on_run(arguments, apply_flags);
  } else {
    run_on_files(arguments, apply_flags);
  }
}

}  // namespace

void add_discrepancy(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "discrepancy", "how far apart two embedding sets, or the domains of a run, are");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("source", arguments->source, "source embeddings, .npy of N x D; or a run")
      ->required();
  command->add_option("target", arguments->target, "target embeddings, .npy of N x D");
  command->add_option("--data", arguments->data, "where the run's data is now");
  command
      ->add_option("--rows", arguments->options.rows,
                   "of a run: rows of each set that the losses compare; 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  arguments->config.add_to(*command, "a configuration; its 'alignment' section is read");
  arguments->device.add_to(*command);
  command->add_option("--precision", arguments->precision, "float or double")
      ->capture_default_str()
      ->check(CLI::IsMember({"float", "double"}));
  command->add_option("--loss", arguments->loss, "vertical, horizontal or both")
      ->capture_default_str()
      ->check(CLI::IsMember({"vertical", "horizontal", "both"}));
  command->add_option("--gradients", arguments->gradients, "folder for the gradients as .npy");
  command->add_option("--intermediates", arguments->intermediates,
                      "folder for typical samples, plans, B and Laplacians as .npy");
  command->add_flag("--json", arguments->json, "machine output on stdout");
  const auto apply_flags =
      add_option_flags(*command, alignment_option_set(arguments->options.alignment));
  command->callback([arguments, apply_flags] { run(*arguments, apply_flags); });
}

}  // namespace cfaa::tools
