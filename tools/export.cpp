// cfaa_gpu export run/ --out dir/: the trained embeddings of both domains, with their ids.

#include <fmt/format.h>

#include "host/run/export.h"
#include "host/run/run_json.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

struct Arguments {
  std::string run, data, out, format = "npy", as = "embeddings";
  bool force = false, json = false;
  DeviceFlags device;
};

void run(const Arguments& arguments) {
  const auto context = arguments.device.make_context();
  const auto model = open_model(*context, arguments.run, arguments.data);
  ExportRequest request;
  request.out = arguments.out;
  if (arguments.format == "safetensors") request.format = ExportFormat::safetensors;
  if (arguments.format == "parquet") request.format = ExportFormat::parquet;
  if (arguments.as == "faiss") request.vectors = ExportVectors::inner_product;
  request.force = arguments.force;
  const ExportReport report = export_embeddings(*model, request);
  if (arguments.json) return print_json(to_json(report));
  fmt::print("written to {}: {} files, rows as in the .tsv beside\n  {}\n", arguments.out,
             report.files.size(), report.score);
}

}  // namespace

void add_export(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("export", "the trained embeddings with their ids, and the scorer");
  command->add_option("run", arguments->run, "what train or 'baseline --out' wrote")->required();
  command->add_option("--out", arguments->out, "a directory")->required();
  command
      ->add_option("--format", arguments->format, "of the arrays; parquet: tables of id and vector")
      ->check(CLI::IsMember({"npy", "safetensors", "parquet"}))
      ->capture_default_str();
  command
      ->add_option("--as", arguments->as,
                   "embeddings: the model's own, and its scorer; faiss: vectors whose inner "
                   "product is the score")
      ->check(CLI::IsMember({"embeddings", "faiss"}))
      ->capture_default_str();
  command->add_option("--data", arguments->data, "where the run's data is now");
  command->add_flag("--force", arguments->force, "replace files that an export did not write");
  command->add_flag("--json", arguments->json, "machine output on stdout");
  arguments->device.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
