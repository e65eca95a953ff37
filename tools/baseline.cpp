// cfaa_gpu baseline data/ NAME: what to beat, under the same protocol.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/run/baseline/measure_baseline.h"
#include "host/run/directory/directory_kind.h"
#include "host/run/run_json.h"
#include "tools/command_line/ranks.h"
#include "tools/tables/evaluation_report.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  std::string data, out;
  int64_t seeds = 1;
  DeviceFlags device;
  EvaluationFlags evaluation;
  BaselineRequest request;
};

void print_tried(const BaselineReport& report) {
  if (report.tried.empty()) return;
  fmt::print("{:<40}  validation NDCG@10\n", report.name);
  for (const BaselineReport::Tried& tried : report.tried) {
    fmt::print("{:<40}  {:.4f}{}\n", tried.description, tried.valid, tried.taken ? "  taken" : "");
  }
  fmt::print("\n");
}

void run(Arguments& arguments, const std::function<void()>& apply_evaluation,
         const std::function<void()>& apply_baseline) {
  EvaluationFlags& flags = arguments.evaluation;
  flags.read(apply_evaluation);
  flags.eval.options();  // refuses what is wrong before the work
  apply_baseline();
  BaselineRequest& request = arguments.request;
  request.evaluation = flags.request();
  if (!request.random() && arguments.seeds > 1) {
    throw Error(
        fmt::format("--seeds {}: {} draws nothing, so that one result stands for every "
                    "seed; leave --seeds out",
                    arguments.seeds, request.name));
  }
  if (!arguments.out.empty() && flags.split != "test") {
    throw Error("--out keeps results of the test split; leave --split out");
  }
  flags.check_outputs();
  require_prepared(arguments.data);
  const RunDirectory out(arguments.out);
  const auto place = [&](int64_t seed) { return arguments.seeds == 1 ? out : out.seed(seed); };
  for (int64_t i = 0; i < arguments.seeds && !arguments.out.empty(); ++i) {
    check_result_place(place(request.options.seed + i), flags.force);
  }
  const Domain domain = load_domain(arguments.data, flags.domain);
  const std::string dataset = arguments.out.empty() ? "" : load_dataset(arguments.data).hash;
  json all = json::array();
  for (int64_t i = 0; i < arguments.seeds; ++i, ++request.options.seed) {
    const auto context = arguments.device.make_context();
    const BaselineReport report = measure_baseline(*context, domain, request);
    if (!arguments.out.empty()) {
      write_baseline(place(request.options.seed), report, dataset, domain);
    }
    flags.write_files(report.evaluation, domain);
    all.push_back(to_json(report));
    if (!flags.json) {
      print_tried(report);
      print_report(report.evaluation);
    }
  }
  if (flags.json) print_json(arguments.seeds == 1 ? all[0] : all);
}

}  // namespace

void add_baseline(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "baseline",
      "what to beat: popularity, item neighbours, factorisations, closed forms, content");
  command->add_option("data", arguments->data, "the directory that prepare wrote")->required();
  command->add_option("name", arguments->request.name, "which one")
      ->required()
      ->check(CLI::IsMember(baseline_names()));
  command->add_flag("--tune", arguments->request.tune,
                    "try a fixed grid on validation, print it, and take the best");
  command->add_option("--out", arguments->out, "directory for result.json, which compare reads");
  command->add_option("--seeds", arguments->seeds, "mf: train this many times, seed by seed")
      ->check(CLI::Range(1, 1000));
  arguments->evaluation.add_to(*command);
  arguments->device.add_to(*command);
  const auto apply_evaluation =
      add_option_flags(*command, evaluation_option_set(arguments->evaluation.eval));
  const auto apply_baseline =
      add_option_flags(*command, baseline_option_set(arguments->request.options));
  command->callback([arguments, apply_evaluation, apply_baseline] {
    if (is_first_rank()) run(*arguments, apply_evaluation, apply_baseline);
  });
}

}  // namespace cfaa::tools
