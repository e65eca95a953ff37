// cfaa_gpu train data/ --out run/: weighs signals, the default; with a configuration it trains CFAA
// or one of its variants.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/terminal/quantity.h"
#include "host/core/terminal/stop_signal.h"
#include "host/device/make_context.h"
#include "host/run/configuration.h"
#include "host/run/directory/directory_kind.h"
#include "host/run/run_json.h"
#include "host/run/train.h"
#include "tools/command.h"
#include "tools/command_line/ranks.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  std::string data, out = "run", trace;
  ConfigFlags config;
  int64_t trace_steps = 1, from = -1, seeds = 1;
  bool fresh = false, json = false, no_graphs = false;
  DeviceFlags device;
};

void print_result(const RunResult& result) {
  if (result.valid) fmt::print("\nbest validation {} {:.4f}", result.metric, *result.valid);
  if (result.best_step) fmt::print(" at step {}", *result.best_step);
  fmt::print("\ntest:\n\n{:<10}", "");
  const std::vector<const char*> names = {"HR@10", "Recall@10", "NDCG@10", "MRR@10"};
  for (const char* name : names) fmt::print("{:>11}", name);
  for (const char* domain : {"target", "source"}) {
    const auto found = result.domains.find(domain);
    if (found == result.domains.end()) continue;
    fmt::print("\n{:<10}", domain);
    const MetricValues& metrics = found->second.metrics;
    for (const char* name : names) {
      if (metrics.count(name) > 0) fmt::print("{:>11.4f}", metrics.at(name));
    }
  }
  fmt::print("\n");
}

// The first --set of a section that only CFAA reads; "" where there is none.
std::string first_set_of_cfaa(const Arguments& arguments) {
  for (const std::string& set : arguments.config.assignments) {
    if (!set.starts_with("signals.") && !set.starts_with("eval.")) return set;
  }
  return "";
}

// Without a configuration signals are weighed, unless --set speaks of CFAA and not of it as their
// residual.
void choose_default(const Arguments& arguments, RunConfig& config) {
  if (!arguments.config.path.empty()) return;
  const std::vector<std::string>& sets = arguments.config.assignments;
  const bool both = std::find(sets.begin(), sets.end(), "signals.residual=model") != sets.end();
  const std::string set = first_set_of_cfaa(arguments);
  if (set.empty() || both) {
    config.signals = default_signals();
  } else {
    log_info("training CFAA by its defaults, because of --set " + set +
             "; without it signals would be weighed");
  }
}

// Trains seed after seed, or weighs signals: as one rank of several, or alone.
void train(Arguments& arguments, const Configuration& configuration, Group& group) {
  TrainRequest request;
  request.group = &group;
  RunConfig& config = request.config = configuration.run;
  const bool signals = config.signals.alone();
  std::optional<TrainingSet> data;
  if (!signals) data.emplace(arguments.data, config.model);
  request.fresh = arguments.fresh;
  request.from = arguments.from;
  request.trace = arguments.trace;
  request.trace_steps = arguments.trace_steps;
  request.graphs = !arguments.no_graphs;
  const StopSignal stop;
  request.stop = &stop.requested();

  const RunDirectory out(arguments.out);
  json results = json::array();
  int64_t& seed = signals ? config.signals.seed : config.train.seed;
  for (int64_t i = 0; i < arguments.seeds; ++i, ++seed) {
    request.out = arguments.seeds == 1 ? out.path() : out.seed(seed).path();
    const auto context = arguments.device.make_context();
    if (i == 0 && data) {
      log_info(fmt::format("training on {}: {} + {} interactions", device_label(*context),
                           data->dataset().source.train.size(),
                           data->dataset().target.train.size()));
    }
    const TrainedRun trained = signals ? train_signals(*context, arguments.data, request)
                                       : train_run(*context, *data, request);
    if (trained.stopped) {
      leave(stop,
            fmt::format("{} done; resume with the same command{}", counted(trained.steps, "step"),
                        arguments.fresh ? " without --fresh" : ""));
    }
    results.push_back(to_json(trained.result));
    if (!arguments.json && group.is_first()) print_result(trained.result);
  }
  if (arguments.json && group.is_first()) {
    print_json(arguments.seeds == 1 ? results[0] : results);
  }
}

Configuration read_configuration(const Arguments& arguments) {
  Configuration configuration;
  choose_default(arguments, configuration.run);
  arguments.config.apply_to(configuration);
  configuration.run.check();
  require_prepared(arguments.data);
  return configuration;
}

void run(Arguments& arguments) {
  const RankPlace place = find_rank();
  const Configuration configuration =
      said_once(place, [&] { return read_configuration(arguments); });
  if (configuration.run.signals.alone()) {
    if (!arguments.trace.empty() || arguments.from >= 0) {
      throw Error("--trace and --from are for a run of CFAA; give a configuration");
    }
    // Nothing of it is divided among ranks: the first does it all.
    if (place.rank == 0) train(arguments, configuration, *make_group_of_one());
    return;
  }
  arguments.device.threads = threads_of_rank(place, arguments.device.threads);
  run_on_ranks(place, [&](Group& group) { train(arguments, configuration, group); });
}

}  // namespace

void add_train(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "train", "weigh signals (no configuration), or train CFAA (with one), on prepared data");
  command->add_option("data", arguments->data, "the directory that prepare wrote")->required();
  arguments->config.add_to(*command, "the configuration, JSON; without one signals are weighed");
  command->add_option("--out", arguments->out, "the run's directory")->capture_default_str();
  command->add_option("--seeds", arguments->seeds, "train this many times, seed by seed")
      ->check(CLI::Range(1, 1000));
  command->add_option("--from", arguments->from, "resume from the checkpoint of this step");
  command->add_option("--trace", arguments->trace, "write the first steps' arrays to this folder");
  command->add_option("--trace-steps", arguments->trace_steps, "steps to trace")
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--fresh", arguments->fresh, "start over: drop what --out holds");
  command->add_flag("--no-graphs", arguments->no_graphs,
                    "on a GPU: queue every step anew instead of replaying CUDA graphs");
  command->add_flag("--json", arguments->json, "the result as JSON");
  arguments->device.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
