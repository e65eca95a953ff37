// cfaa_gpu synthesize --out raw/: reviews of two domains with a planted structure.

#include "host/data/synthesis/synthesis.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/core/terminal/progress.h"
#include "host/core/terminal/quantity.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

struct Arguments {
  SynthesisOptions options;
  std::string out, compress = "none";
  int threads = 0;
  bool force = false, json = false;
};

void run(Arguments& arguments) {
  SynthesisOptions& options = arguments.options;
  if (arguments.compress == "gz") options.compression = Compression::gzip;
  if (arguments.compress == "zst") options.compression = Compression::zstd;
  ThreadPool pool(arguments.threads);
  Progress progress("writing", 2 * options.interactions, {"review"});
  const nlohmann::json report = synthesize(options, arguments.out, arguments.force, pool,
                                           [&](int64_t count) { progress.advance(count); });
  progress.finish();
  if (arguments.json) {
    print_json(report);
    return;
  }
  const auto file = [&](int i) {
    return arguments.out + "/" + report["files"][i].get<std::string>();
  };
  fmt::print("each domain: {}, {}, {} over {}, shift {}\n", counted(options.users, "user"),
             counted(options.items, "item"), counted(options.interactions, "review"),
             counted(options.topics, "topic"), options.shift);
  print_line(
      fmt::format("next: cfaa_gpu prepare --source {} --target {} --out data", file(0), file(1)));
}

}  // namespace

void add_synthesize(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("synthesize", "raw reviews of two domains with a planted structure");
  auto arguments = std::make_shared<Arguments>();
  SynthesisOptions& options = arguments->options;
  command->add_option("--out", arguments->out, "the directory to write")->required();
  command->add_option("--users", options.users, "users of each domain")->capture_default_str();
  command->add_option("--items", options.items, "items of each domain")->capture_default_str();
  command->add_option("--interactions", options.interactions, "reviews of each domain")
      ->capture_default_str();
  command->add_option("--topics", options.topics, "topics that both domains share")
      ->capture_default_str();
  command->add_option("--shift", options.shift, "how far the domains lie apart; 0: not at all")
      ->capture_default_str();
  command->add_option("--seed", options.seed, "random seed of every draw")->capture_default_str();
  command->add_option("--compress", arguments->compress, "none, gz or zst")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "gz", "zst"}));
  command->add_option("--threads", arguments->threads, "threads; 0: as many as cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command->add_flag("--force", arguments->force, "replace a synthesized directory");
  command->add_flag("--json", arguments->json, "machine output on stdout");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
