// cfaa_gpu evaluate run/, or data/ --user-embeddings U.npy --item-embeddings V.npy: a trained run's
// lists, or any model's scores, under one protocol.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/stopwatch.h"
#include "host/core/terminal/quantity.h"
#include "host/run/directory/directory_kind.h"
#include "host/run/evaluate.h"
#include "host/run/newcomers.h"
#include "host/run/result.h"
#include "host/run/run.h"
#include "host/run/run_json.h"
#include "tools/command_line/ranks.h"
#include "tools/tables/evaluation_report.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  std::string place;  // a run, or data
  ScoreFiles files;
  std::string data, out, name, encoder;
  bool newcomers = false;
  DeviceFlags device;
  EvaluationFlags evaluation;
};

// What --out keeps for `compare`.
void keep(const Arguments& arguments, const EvaluationReport& report, const Domain& domain,
          const std::string& dataset) {
  if (arguments.out.empty()) return;
  RunResult result;
  result.model = arguments.name.empty() ? "scores" : arguments.name;
  result.every_seed = true;
  result.dataset = dataset;
  if (report.valid) result.metric = "NDCG@10";
  result.valid = report.valid;
  write_result(RunDirectory(arguments.out), result, report.evaluation, domain);
}

void check_outputs(const Arguments& arguments) {
  const EvaluationFlags& flags = arguments.evaluation;
  if (!arguments.newcomers && !arguments.encoder.empty()) {
    throw Error("--model goes with --newcomers");
  }
  if (arguments.newcomers && (flags.domain != "target" || flags.split != "test")) {
    throw Error("--newcomers are users of the target; leave --domain and --split out");
  }
  arguments.evaluation.check_outputs();
  if (arguments.out.empty()) return;
  if (arguments.evaluation.split != "test") {
    throw Error("--out keeps results of the test split; leave --split out");
  }
  check_result_place(RunDirectory(arguments.out), arguments.evaluation.force);
}

EvaluationRequest request_of(const Arguments& arguments) {
  EvaluationRequest request = arguments.evaluation.request();
  request.with_validation = !arguments.out.empty();
  return request;
}

void show(const EvaluationFlags& flags, const EvaluationReport& report, const Domain& domain,
          const json& more) {
  flags.write_files(report, domain);
  if (!flags.json) return print_report(report);
  json fields = to_json(report);
  fields.update(more);
  print_json(fields);
}

// Those whom prepare held out, by the reviews that they wrote.
void run_on_newcomers(const Arguments& arguments, Context& context, RankingModel& model) {
  const EvaluationFlags& flags = arguments.evaluation;
  const NewcomersReport measured = evaluate_newcomers(
      context, model, flags.eval, open_review_reader(context, model, arguments.encoder));
  keep(arguments, measured.report, measured.people, model.dataset_hash());
  show(flags, measured.report, measured.people,
       {{"run", arguments.place},
        {"without_reviews", measured.without_reviews},
        {"of_unknown_items", measured.of_unknown_items}});
  if (flags.json) return;
  print_line(fmt::format("not counted: {} without a review, {} that nobody else has",
                         counted(measured.without_reviews, "user"),
                         counted(measured.of_unknown_items, "item to find", "items to find")));
}

// A run's best parameters, ranked.
void run_on_run(Arguments& arguments, const std::function<void()>& apply_flags) {
  const ScoreFiles& files = arguments.files;
  if (!files.users.empty() || !files.items.empty() || !files.scores.empty()) {
    throw Error(
        fmt::format("{}: is a run, which has its own scores; give its data instead to measure "
                    "--user-embeddings, --item-embeddings or --scores",
                    arguments.place));
  }
  check_outputs(arguments);
  const Stopwatch watch;
  const auto context = arguments.device.make_context();
  const auto model = open_model(*context, arguments.place, arguments.data);
  const double opening_seconds = watch.seconds();
  EvaluationFlags& flags = arguments.evaluation;
  if (const Run* run = dynamic_cast<const Run*>(model.get())) flags.eval = run->config().eval;
  flags.read(apply_flags);
  if (arguments.newcomers) return run_on_newcomers(arguments, *context, *model);
  EvaluationReport report = evaluate_model(*context, *model, request_of(arguments));
  report.read_seconds += opening_seconds;
  const Domain& domain = model->domain(domain_index(flags.domain));
  keep(arguments, report, domain, model->dataset_hash());
  show(flags, report, domain, {{"run", arguments.place}});
}

void run_on_files(Arguments& arguments, const std::function<void()>& apply_flags) {
  if (arguments.newcomers) {
    throw Error(fmt::format("{}: --newcomers needs a run, which places them", arguments.place));
  }
  EvaluationFlags& flags = arguments.evaluation;
  flags.read(apply_flags);
  flags.eval.options();  // refuses what is wrong before the files are read
  check_outputs(arguments);
  require_prepared(arguments.place);
  const auto context = arguments.device.make_context();
  const Domain domain = load_domain(arguments.place, flags.domain);
  const EvaluationReport report =
      evaluate_files(*context, domain, arguments.files, request_of(arguments));
  keep(arguments, report, domain, arguments.out.empty() ? "" : load_dataset(arguments.place).hash);
  show(flags, report, domain, json::object());
}

void run(Arguments& arguments, const std::function<void()>& apply_flags) {
  const RunDirectory place(arguments.place);
  if (is_model(arguments.place)) {
    run_on_run(arguments, apply_flags);
    return;
  }
  const auto seeds = place.seeds();
  if (!seeds.empty()) {
    throw Error(
        fmt::format("{}: holds the runs of {} seeds; give one of them, such as {}, or use "
                    "'cfaa_gpu compare'",
                    arguments.place, seeds.size(), seeds[0].name()));
  }
  run_on_files(arguments, apply_flags);
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("evaluate", "measures the lists of a run, or of any model's scores");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("run_or_data", arguments->place,
                   "a run that train wrote; or data that prepare wrote, with scores to rank")
      ->required();
  command->add_option("--user-embeddings", arguments->files.users,
                      ".npy of users x D, rows as in users.tsv");
  command->add_option("--item-embeddings", arguments->files.items,
                      ".npy of items x D, rows as in items.tsv");
  command->add_option("--scores", arguments->files.scores, ".npy of users x items, instead");
  command->add_option("--data", arguments->data, "where the run's data is now");
  command->add_option("--out", arguments->out, "directory for result.json, which compare reads");
  command->add_option("--name", arguments->name, "of --out: what compare calls the row's variant");
  command->add_flag("--newcomers", arguments->newcomers,
                    "of a run: lists for the users whom prepare --hold-out-users kept out");
  command->add_option("--model", arguments->encoder,
                      "of --newcomers, in a run that reads vectors of reviews: the folder of the "
                      "encoder that made them");
  arguments->evaluation.add_to(*command);
  arguments->device.add_to(*command);
  const auto apply_flags =
      add_option_flags(*command, evaluation_option_set(arguments->evaluation.eval));
  command->callback([arguments, apply_flags] {
    if (is_first_rank()) run(*arguments, apply_flags);
  });
}

}  // namespace cfaa::tools
