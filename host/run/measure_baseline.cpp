#include "host/run/measure_baseline.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/core/stopwatch.h"
#include "host/eval/user_metrics_file.h"
#include "host/run/matrix_factorization.h"

namespace cfaa {

BaselineReport measure_baseline(Context& context, const Domain& domain,
                                const BaselineRequest& request) {
  const Stopwatch watch;
  BaselineReport report;
  report.name = request.name;
  const auto measure = [&](const Scorer& scorer) {
    report.train_seconds = watch.seconds();
    report.evaluation = evaluate_scorer(context, domain, scorer, request.evaluation);
  };
  if (request.name == "itemknn") {
    const ItemNeighbours neighbours(context, domain, request.options);
    measure(*neighbours.scorer());
  } else if (request.name == "popularity") {
    const DomainEmbeddings embeddings = popularity_embeddings(domain);
    measure(*make_scorer(context, embeddings, {}));
  } else if (request.name == "mf") {
    const Factorization trained = factorize(context, domain, request.options);
    report.training = {request.options.seed, trained.epochs, trained.best_epoch, trained.valid};
    measure(*make_scorer(context, trained.embeddings, {}));
  } else {
    throw Error(
        fmt::format("'{}' is not a baseline; they are popularity, itemknn and mf", request.name));
  }
  return report;
}

void check_baseline_place(const RunDirectory& place, bool force) {
  if (place.is_run()) {
    throw Error(
        fmt::format("--out {}: is a run, whose result a baseline would replace; give a "
                    "directory of its own",
                    place.name()));
  }
  if (force || !std::filesystem::exists(place.result())) return;
  if (read_result(place).baseline.empty()) {
    throw Error(
        fmt::format("{}: is there already and was not written by a baseline; give another "
                    "--out, or replace it with --force",
                    place.result().string()));
  }
}

void write_baseline(const RunDirectory& place, const BaselineReport& report,
                    const std::string& dataset, const Domain& domain) {
  RunResult result;
  result.baseline = report.name;
  result.dataset = dataset;
  if (report.training) {
    result.seed = report.training->seed;
    result.metric = "NDCG@10";
    result.valid = report.training->valid;
  } else {
    result.every_seed = true;
  }
  const Evaluation& evaluation = report.evaluation.evaluation;
  result.domains[domain.name] = domain_result(evaluation.all);
  std::filesystem::create_directories(place.path());
  write_user_metrics(place.user_metrics(domain.name).string(), evaluation.per_user, domain.users);
  write_result(place, result);
}

}  // namespace cfaa
