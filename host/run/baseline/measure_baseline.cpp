#include "host/run/baseline/measure_baseline.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/core/error.h"
#include "host/core/stopwatch.h"
#include "host/run/baseline/kept_baseline.h"
#include "host/run/baseline/matrix_factorization.h"
#include "host/run/signal_model.h"

namespace cfaa {

namespace {

// Makes and measures one baseline with any settings.
class Maker {
 public:
  Maker(Context& context, const Domain& domain, const std::string& name)
      : context_(context), domain_(domain), name_(name), signals_(context, domain) {}

  // What `measure` makes of the scorer; with mf how it was trained.
  template <class Measure>
  std::optional<BaselineReport::Training> with(const BaselineOptions& options, Measure measure) {
    if (name_ != "mf") {
      measure(*signals_.scorer(name_, options));
      return std::nullopt;
    }
    const Factorization trained = factorize(context_, domain_, options);
    measure(*make_scorer(context_, trained.embeddings, {}));
    embeddings_ = trained.embeddings;
    return BaselineReport::Training{options.seed, trained.epochs, trained.best_epoch};
  }

  // Of mf, the last that was made.
  const DomainEmbeddings& embeddings() const { return embeddings_; }

 private:
  Context& context_;
  const Domain& domain_;
  std::string name_;
  SignalBaselines signals_;
  DomainEmbeddings embeddings_;
};

// The settings with the best NDCG@10 on validation; the first of equals.
BaselineOptions tuned(Context& context, const Domain& domain, Maker& maker,
                      const BaselineRequest& request, BaselineReport& report) {
  BaselineOptions best = request.options;
  std::size_t taken = 0;
  for (const BaselineSetting& setting : baseline_grid(request.name, request.options)) {
    std::optional<double> valid;
    maker.with(setting.options,
               [&](const Scorer& scorer) { valid = validation_ndcg(context, domain, scorer); });
    if (!valid) {
      throw Error(domain.path.string() +
                  ": its valid split has no positive interaction to tune on; leave --tune out");
    }
    report.tried.push_back({setting.description, *valid, false});
    if (report.tried.size() == 1 || *valid > report.tried[taken].valid) {
      taken = report.tried.size() - 1;
      best = setting.options;
    }
  }
  if (!report.tried.empty()) report.tried[taken].taken = true;
  return best;
}

}  // namespace

BaselineReport measure_baseline(Context& context, const Domain& domain,
                                const BaselineRequest& request) {
  const auto& names = baseline_names();
  if (std::find(names.begin(), names.end(), request.name) == names.end()) {
    throw Error(
        fmt::format("'{}' is not a baseline; they are {}", request.name, fmt::join(names, ", ")));
  }
  BaselineReport report;
  report.name = request.name;
  Maker maker(context, domain, request.name);
  const BaselineOptions options =
      request.tune ? tuned(context, domain, maker, request, report) : request.options;
  EvaluationRequest evaluation = request.evaluation;
  evaluation.with_validation = true;
  const Stopwatch watch;
  report.training = maker.with(options, [&](const Scorer& scorer) {
    report.train_seconds = watch.seconds();
    report.evaluation = evaluate_scorer(context, domain, scorer, evaluation);
  });
  report.options = options;
  report.embeddings = maker.embeddings();
  return report;
}

void write_baseline(const RunDirectory& place, const BaselineReport& report,
                    const std::string& dataset, const Domain& domain) {
  RunResult result;
  result.baseline = report.name;
  result.dataset = dataset;
  if (report.training) result.seed = report.training->seed;
  result.every_seed = !report.training;
  if (report.evaluation.valid) result.metric = "NDCG@10";
  result.valid = report.evaluation.valid;
  write_result(place, result, report.evaluation.evaluation, domain);
  const std::filesystem::path data =
      std::filesystem::absolute(domain.path.parent_path()).lexically_normal();
  keep_baseline(place, {report.name, domain.name, report.options, data.string(), dataset},
                report.embeddings);
}

}  // namespace cfaa
