// cfaa_gpu export run/ --out dir/: the trained embeddings of both domains, with their ids.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/io/atomic_file.h"
#include "host/io/npy.h"
#include "host/io/safetensors.h"
#include "host/run/run.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string run, data, out, format = "npy";
  DeviceFlags device;
};

void write_ids(const fs::path& path, const IdList& ids) {
  AtomicFile file(path.string());
  file.write("index\tid\n");
  for (int64_t i = 0; i < ids.size(); ++i) file.write(fmt::format("{}\t{}\n", i, ids[i]));
  file.commit();
}

void run(const Arguments& arguments) {
  const auto context = arguments.device.make_context();
  Run trained(*context, arguments.run, arguments.data);
  const fs::path out = arguments.out;
  fs::create_directories(out);
  SafetensorsWriter writer;
  PerDomain<DomainEmbeddings> embeddings;
  for (const std::size_t d : {kSource, kTarget}) {
    embeddings[d] = trained.embed(d);
    const Domain& domain = trained.domain(d);
    for (const std::size_t side : {kUser, kItem}) {
      const std::string name = domain.name + (side == kUser ? "_users" : "_items");
      const std::vector<int64_t> shape = {embeddings[d].count[side], embeddings[d].dim};
      const float* values = embeddings[d].z[side].data();
      if (arguments.format == "npy") {
        write_npy<float>((out / (name + ".npy")).string(), shape, values);
      } else {
        writer.add(name, shape, values);
      }
      write_ids(out / (name + ".tsv"), side == kUser ? domain.users : domain.items);
    }
  }
  if (arguments.format != "npy") writer.write((out / "embeddings.safetensors").string());
  fmt::print(stderr, "written to {}: rows as in the .tsv files beside\n", out.string());
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
