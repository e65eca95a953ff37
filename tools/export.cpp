// cfaa_gpu export run/ --out dir/: the trained embeddings of both domains, with their ids.

#include <fmt/format.h>

#include "host/run/export.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

struct Arguments {
  std::string run, data, out, format = "npy";
  DeviceFlags device;
};

void run(const Arguments& arguments) {
  const auto context = arguments.device.make_context();
  Run trained(*context, arguments.run, arguments.data);
  export_embeddings(
      trained,
      {arguments.out, arguments.format == "npy" ? ExportFormat::npy : ExportFormat::safetensors});
  fmt::print(stderr, "written to {}: rows as in the .tsv files beside\n", arguments.out);
}

}  // namespace

void add_export(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("export", "the trained embeddings, with their ids");
  command->add_option("run", arguments->run, "the directory that train wrote")->required();
  command->add_option("--out", arguments->out, "a directory")->required();
  command->add_option("--format", arguments->format, "of the arrays")
      ->check(CLI::IsMember({"npy", "safetensors"}))
      ->capture_default_str();
  command->add_option("--data", arguments->data, "where the run's data is now");
  arguments->device.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
