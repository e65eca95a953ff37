// cfaa_gpu prepare --source FILE... --target FILE... --out data/: raw reviews of two domains to
// splits that nothing leaks from.

#include "host/data/prepare.h"

#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/terminal/printable.h"
#include "host/core/terminal/progress.h"
#include "host/core/terminal/quantity.h"
#include "host/run/configuration.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  PrepareRequest request;
  std::string out;
  ConfigFlags config;
  int threads = 0;
  int64_t memory = 1024;  // MiB
  bool json = false;
};

// The counts of each step as a table that grows while the steps run.
class StepTable {
 public:
  void add(const PrepareStep& step) {
    if (std::exchange(fresh_, false)) {
      fmt::print("\n{:<11}{:<7}{:>24}{:>18}{:>18}\n", "step", "domain", "interactions", "users",
                 "items");
    }
    fmt::print("{:<11}{:<7}{:>24}{:>18}{:>18}\n", step.step, step.domain,
               change(step.before.interactions, step.after.interactions),
               change(step.before.users, step.after.users),
               change(step.before.items, step.after.items));
  }

 private:
  static std::string change(int64_t before, int64_t after) {
    return before == after ? fmt::format("{}", after) : fmt::format("{} -> {}", before, after);
  }
  bool fresh_ = true;
};

void print_read(const std::string& domain, const ReadReport& report) {
  for (const FileReport& file : report.files) {
    print_line(fmt::format("{}: {} ({}; {}): {}", domain, printable(file.identity.name),
                           file.format, printable(file.columns),
                           counted(file.interactions, "review")));
  }
  for (const FileReport& file : report.title_files) {
    print_line(fmt::format("{}: {} ({}; {}): titles", domain, printable(file.identity.name),
                           file.format, printable(file.columns)));
  }
  if (report.without_text > 0) fmt::print("{}: {} without text\n", domain, report.without_text);
  if (report.without_time > 0) fmt::print("{}: {} without time\n", domain, report.without_time);
}

void print_result(const json& report, const std::string& out) {
  fmt::print("\n{:<9}{:>10}{:>10}{:>14}{:>12}{:>12}{:>12}\n", "domain", "users", "items",
             "interactions", "train", "valid", "test");
  for (const char* name : {"source", "target"}) {
    const json& d = report["result"][name];
    fmt::print("{:<9}{:>10}{:>10}{:>14}{:>12}{:>12}{:>12}\n", name, d["users"].get<int64_t>(),
               d["items"].get<int64_t>(), d["interactions"].get<int64_t>(),
               d["train"].get<int64_t>(), d["valid"].get<int64_t>(), d["test"].get<int64_t>());
  }
  for (const char* name : {"source", "target"}) {
    const json& d = report["result"][name];
    if (!d.contains("items_with_title")) continue;
    fmt::print("{}: {} of {} items have a title\n", name, d["items_with_title"].get<int64_t>(),
               d["items"].get<int64_t>());
  }
  fmt::print("\n");
  print_line(fmt::format("written to {}; `cfaa_gpu stats {}` tells more", out, out));
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  Configuration configuration;
  arguments.config.apply_to(configuration);
  arguments.request.options = configuration.prepare;
  apply_flags();
  arguments.request.out = arguments.out;
  arguments.request.memory = static_cast<uint64_t>(arguments.memory) << 20;
  // A file that may not grow is an error of the write, with a sentence, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  ThreadPool pool(arguments.threads);

  StepTable table;
  std::unique_ptr<Progress> progress;
  uint64_t shown = 0;
  PrepareEvents events;
  events.reading = [&](const std::string& domain, uint64_t bytes) {
    if (!progress)
      progress = std::make_unique<Progress>("reading " + domain, 0, ProgressUnit{"MB", 1e-6});
    progress->advance(static_cast<int64_t>(bytes - std::exchange(shown, bytes)));
  };
  events.read = [&](const std::string& domain, const ReadReport& report) {
    progress.reset();
    shown = 0;
    for (const BadLine& line : report.bad) {
      log_warning(fmt::format("{}:{}: {}; left out", line.file, line.line, line.reason));
    }
    if (!arguments.json) print_read(domain, report);
  };
  if (!arguments.json) events.step = [&](const PrepareStep& step) { table.add(step); };
  const json report = prepare(arguments.request, pool, events);
  if (arguments.json) {
    print_json(report);
  } else {
    print_result(report, arguments.out);
  }
}

}  // namespace

void add_prepare(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("prepare", "raw reviews of two domains to training, validation and test");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("--source", arguments->request.source,
                   "review files of the source: JSON lines, Python literals, CSV, TSV, .inter; "
                   "plain, gzip or zstd")
      ->required();
  command->add_option("--target", arguments->request.target, "review files of the target")
      ->required();
  command->add_option("--source-titles", arguments->request.source_titles,
                      "files about the source's items with an id and a title (Amazon's metadata, "
                      "MovieLens' movies.csv), for recommend to show");
  command->add_option("--target-titles", arguments->request.target_titles,
                      "likewise, about the target's items");
  command->add_option("--out", arguments->out, "the directory to write")->required();
  command->add_flag("--force", arguments->request.force, "replace a prepared directory");
  arguments->config.add_to(*command, "a configuration; its 'prepare' section is read");
  command->add_option("--threads", arguments->threads, "threads; 0: as many as cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  command
      ->add_option("--memory", arguments->memory,
                   "MiB of rows and texts to keep in memory; more lies in an unlinked file beside "
                   "the output")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  command->add_flag("--json", arguments->json, "machine output on stdout: prepare.json");
  command
      ->add_option_function<std::string>(
          "--target-keep-from",
          [](const std::string&) {
            throw Error(
                "--target-keep-from is gone: --target-labels SHARE thins the labels of training "
                "and validation, --target-keep SHARE the whole target");
          },
          "")
      ->group("");
  const auto apply_flags =
      add_option_flags(*command, prepare_option_set(arguments->request.options));
  command->callback([arguments, apply_flags] { run(*arguments, apply_flags); });
}

}  // namespace cfaa::tools
