// cfaa_gpu train data/ config.json --out run/: trains CFAA or one of its variants.

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/data/dataset.h"
#include "host/device/make_context.h"
#include "host/io/atomic_file.h"
#include "host/io/json_file.h"
#include "host/train/trainer.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Arguments {
  std::string data, config, out = "run", trace;
  std::vector<std::string> assignments;
  int64_t trace_steps = 1, from = -1, seeds = 1;
  bool fresh = false, json = false;
  DeviceFlags device;
};

std::atomic<bool> stop_requested{false};

void request_stop(int) {
  stop_requested.store(true);
}

// The keys whose values differ, "train.epochs (50 -> 20)".
void list_differences(const json& before, const json& after, const std::string& path,
                      std::vector<std::string>& found) {
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : after.items()) {
      list_differences(before.value(key, json()), value, path.empty() ? key : path + "." + key,
                       found);
    }
    return;
  }
  if (before != after) {
    found.push_back(fmt::format("{} ({} -> {})", path, before.dump(), after.dump()));
  }
}

// Settings that say how a run is shown and stopped, not what it computes.
json computed(json config) {
  for (const char* key : {"epochs", "patience", "log_every", "keep_checkpoints"}) {
    config["train"].erase(key);
  }
  config.erase("eval");
  return config;
}

// True where a directory holds something that is not ours: more than what a run leaves that was
// killed while it wrote its first file, run.json.
bool holds_other_files(const fs::path& directory) {
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(directory, absent)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("run.json.") || !name.ends_with(".tmp")) return true;
  }
  return false;
}

// Makes the run's directory, or checks that it holds this very run.
void open_run(const Arguments& arguments, const fs::path& run, const Dataset& dataset,
              RunConfig& config) {
  const fs::path description = run / "run.json";
  const json fields = {{"config", config.to_json()},
                       {"data", fs::absolute(arguments.data).lexically_normal().string()},
                       {"dataset", dataset.hash},
                       {"version", CFAA_VERSION}};
  if (arguments.fresh) {
    for (const char* name :
         {"checkpoints", "tensorboard", "metrics.jsonl", "best.safetensors", "best.json",
          "result.json", "target_users.tsv", "source_users.tsv", "run.json"}) {
      fs::remove_all(run / name);
    }
  }
  if (!fs::exists(description)) {
    if (holds_other_files(run) && !arguments.fresh) {
      throw Error(run.string() + ": is there and holds no run; give another --out");
    }
    fs::create_directories(run);
    write_file(description.string(), fields.dump(2) + "\n");
    return;
  }
  const json before = read_json_object(description);
  if (before.value("dataset", "") != dataset.hash) {
    throw Error(
        fmt::format("{}: was trained on other data ({}); start over with --fresh, or give "
                    "another --out",
                    run.string(), before.value("data", "")));
  }
  std::vector<std::string> differences;
  list_differences(computed(before.value("config", json::object())), computed(config.to_json()), "",
                   differences);
  if (!differences.empty()) {
    throw Error(
        fmt::format("{}: was started with other settings: {}; start over with --fresh, or "
                    "give another --out",
                    run.string(), fmt::join(differences, ", ")));
  }
  write_file(description.string(), fields.dump(2) + "\n");
}

void print_result(const json& result) {
  fmt::print("\nbest validation {} {:.4f} at step {}; test:\n\n{:<10}",
             result["metric"].get<std::string>(), result["valid"].get<double>(),
             result["best_step"].get<int64_t>(), "");
  const std::vector<const char*> names = {"HR@10", "Recall@10", "NDCG@10", "MRR@10"};
  for (const char* name : names) fmt::print("{:>11}", name);
  for (const char* domain : {"target", "source"}) {
    fmt::print("\n{:<10}", domain);
    for (const char* name : names) {
      if (result[domain].contains(name))
        fmt::print("{:>11.4f}", result[domain][name].get<double>());
    }
  }
  fmt::print("\n");
}

void run(Arguments& arguments) {
  RunConfig config;
  config.read(read_config(arguments.config), arguments.config);
  for (const std::string& assignment : arguments.assignments) config.set(assignment);
  config.check();
  const Dataset dataset = load_dataset(arguments.data);
  const TrainingData data = load_training_data(dataset, config.model);
  const int64_t first_seed = config.train.seed;
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);

  json results = json::array();
  for (int64_t i = 0; i < arguments.seeds; ++i) {
    config.train.seed = first_seed + i;
    const fs::path place = arguments.seeds == 1
                               ? fs::path(arguments.out)
                               : fs::path(arguments.out) / fmt::format("seed-{}", first_seed + i);
    open_run(arguments, place, dataset, config);
    const auto context = arguments.device.make_context(static_cast<uint64_t>(config.train.seed));
    if (i == 0) {
      log_info(fmt::format("training on {}: {} + {} interactions", device_label(*context),
                           dataset.source.train.size(), dataset.target.train.size()));
    }
    const TrainOutcome outcome =
        train(*context, data, config,
              {place, arguments.from, arguments.trace, arguments.trace_steps, &stop_requested});
    if (outcome.stopped) {
      log_info(
          fmt::format("stopped after step {}; the same command resumes from there", outcome.steps));
      throw CLI::RuntimeError(130);
    }
    results.push_back(outcome.result);
    if (!arguments.json) print_result(outcome.result);
  }
  if (arguments.json) print_json(arguments.seeds == 1 ? results[0] : results);
}

}  // namespace

void add_train(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("train", "train CFAA on prepared and embedded data");
  command->add_option("data", arguments->data, "the directory that prepare wrote")->required();
  command->add_option("config", arguments->config, "the configuration, JSON");
  command->add_option("--out", arguments->out, "the run's directory")->capture_default_str();
  command->add_option("--set", arguments->assignments, "section.key=value, over the configuration");
  command->add_option("--seeds", arguments->seeds, "train this many times, seed by seed")
      ->check(CLI::Range(1, 1000));
  command->add_option("--from", arguments->from, "resume from the checkpoint of this step");
  command->add_option("--trace", arguments->trace, "write the first steps' arrays to this folder");
  command->add_option("--trace-steps", arguments->trace_steps, "steps to trace")
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--fresh", arguments->fresh, "start over: drop what --out holds");
  command->add_flag("--json", arguments->json, "the result as JSON");
  arguments->device.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
