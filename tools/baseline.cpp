// cfaa_gpu baseline data/ popularity|itemknn|mf: what to beat, under the same protocol.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/eval/user_metrics_file.h"
#include "host/io/atomic_file.h"
#include "host/run/baselines.h"
#include "host/run/matrix_factorization.h"
#include "tools/evaluation_report.h"

namespace cfaa::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Arguments {
  std::string data, name, out;
  int64_t seeds = 1;
  DeviceFlags device;
  EvaluationFlags evaluation;
  BaselineOptions baseline;

  bool random() const { return name == "mf"; }
};

// Makes the model and measures it.
EvaluationReport measure_baseline(Context& context, const Arguments& arguments,
                                  const Domain& domain) {
  const EvaluationFlags& flags = arguments.evaluation;
  const auto start = std::chrono::steady_clock::now();
  json fields = {{"baseline", arguments.name}};
  const auto finish = [&](const Scorer& scorer) {
    fields["seconds"]["train"] = seconds_since(start);
    EvaluationReport report = measure(context, flags, domain, scorer);
    report.fields.merge_patch(fields);
    return report;
  };
  if (arguments.name == "itemknn") {
    const ItemNeighbours neighbours(context, domain, arguments.baseline);
    return finish(*neighbours.scorer());
  }
  if (arguments.name == "popularity") {
    const DomainEmbeddings embeddings = popularity_embeddings(domain);
    return finish(*make_scorer(context, embeddings, {}));
  }
  const Factorization trained = factorize(context, domain, arguments.baseline);
  fields["seed"] = arguments.baseline.seed;
  fields["epochs"] = trained.epochs;
  fields["best_epoch"] = trained.best_epoch;
  fields["valid"] = trained.valid;
  return finish(*make_scorer(context, trained.embeddings, {}));
}

// result.json and the users' metrics in the form that a run has them, so that `compare` reads both.
void write_result(const fs::path& place, const Arguments& arguments, const EvaluationReport& report,
                  const std::string& dataset, const Domain& domain) {
  json result = {{"baseline", arguments.name}, {"dataset", dataset}};
  if (arguments.random()) {
    result["seed"] = report.fields["seed"];
    result["valid"] = report.fields["valid"];
    result["metric"] = "NDCG@10";
  } else {
    result["every_seed"] = true;
  }
  json metrics = {{"users", report.evaluation.all.users},
                  {"positives", report.evaluation.all.positives}};
  add_metrics(metrics, report.evaluation.all.metrics);
  result[arguments.evaluation.domain] = metrics;
  write_user_metrics(user_metrics_path(place, domain.name).string(), report.evaluation.per_user,
                     domain.users);
  write_file((place / "result.json").string(), result.dump(2) + "\n");
}

void run(Arguments& arguments, const std::function<void()>& apply_evaluation,
         const std::function<void()>& apply_baseline) {
  EvaluationFlags& flags = arguments.evaluation;
  flags.read(apply_evaluation);
  flags.eval.options();  // refuses what is wrong before the work
  apply_baseline();
  if (!arguments.random() && arguments.seeds > 1) {
    throw Error(
        fmt::format("--seeds {}: {} draws nothing, so that one result stands for every "
                    "seed; leave --seeds out",
                    arguments.seeds, arguments.name));
  }
  if (!arguments.out.empty() && flags.split != "test") {
    throw Error("--out keeps results of the test split; leave --split out");
  }
  const Domain domain = load_domain(arguments.data, flags.domain);
  const std::string dataset = arguments.out.empty() ? "" : load_dataset(arguments.data).hash;
  const int64_t first_seed = arguments.baseline.seed;
  json all = json::array();
  for (int64_t i = 0; i < arguments.seeds; ++i) {
    arguments.baseline.seed = first_seed + i;
    const auto context = arguments.device.make_context();
    const EvaluationReport report = measure_baseline(*context, arguments, domain);
    if (!arguments.out.empty()) {
      const fs::path place = arguments.seeds == 1
                                 ? fs::path(arguments.out)
                                 : fs::path(arguments.out) / fmt::format("seed-{}", first_seed + i);
      fs::create_directories(place);
      write_result(place, arguments, report, dataset, domain);
    }
    all.push_back(report.fields);
    if (!flags.json) print_report(flags, report);
  }
  if (flags.json) print_json(arguments.seeds == 1 ? all[0] : all);
}

}  // namespace

void add_baseline(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "baseline", "popularity, item neighbours, matrix factorisation: what to beat");
  command->add_option("data", arguments->data, "the directory that prepare wrote")->required();
  command->add_option("name", arguments->name, "popularity, itemknn or mf")
      ->required()
      ->check(CLI::IsMember({"popularity", "itemknn", "mf"}));
  command->add_option("--out", arguments->out, "directory for result.json, which compare reads");
  command->add_option("--seeds", arguments->seeds, "mf: train this many times, seed by seed")
      ->check(CLI::Range(1, 1000));
  arguments->evaluation.add_to(*command);
  arguments->device.add_to(*command);
  const auto apply_evaluation =
      add_option_flags(*command, evaluation_option_set(arguments->evaluation.eval));
  const auto apply_baseline = add_option_flags(*command, baseline_option_set(arguments->baseline));
  command->callback([arguments, apply_evaluation, apply_baseline] {
    run(*arguments, apply_evaluation, apply_baseline);
  });
}

}  // namespace cfaa::tools
