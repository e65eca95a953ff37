// cfaa_gpu discrepancy zs.npy zt.npy, or run/: how far apart two embedding sets are, by both
// alignment losses and by a classifier that tells them apart.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/io/json_file.h"
#include "host/ops/alignment_config.h"
#include "host/run/directory_kind.h"
#include "host/run/discrepancy.h"
#include "host/run/run_json.h"
#include "tools/command.h"
#include "tools/discrepancy_report.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  std::string source, target;  // two files; or a run, and nothing
  std::string data, config, precision = "float", loss = "both", gradients, intermediates;
  DiscrepancyOptions options;
  DeviceFlags device;
  bool json = false;
};

// The fixtures' case.json has the alignment keys in `parameters`; a configuration in `alignment`.
void read_alignment(const std::string& path, OptionSet& set) {
  if (path.empty()) return;
  const json any = read_json(path);
  if (any.is_object() && any.contains("parameters")) {
    set.read(any["parameters"], path, {"name"});
    return;
  }
  const json config = read_config(path);
  if (config.contains("alignment")) set.read(config["alignment"], path);
}

// The settings of --config and of the flags, over those that are there.
void apply_settings(Arguments& arguments, const std::function<void()>& apply_flags) {
  OptionSet set = alignment_option_set(arguments.options.alignment);
  read_alignment(arguments.config, set);
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
    if (std::filesystem::is_directory(arguments.source)) require_run(arguments.source);
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
  command->add_option("--config", arguments->config, "configuration with an 'alignment' section");
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
