#include "host/run/run_json.h"

#include "host/eval/user_metrics_file.h"

namespace cfaa {
namespace {

using nlohmann::json;

json to_json(const Part& part) {
  json fields = part.users > 0 ? json(metric_values(part.metrics)) : json::object();
  fields["users"] = part.users;
  fields["positives"] = part.positives;
  return fields;
}

json to_json(const PairedTest& test) {
  json fields = {{"pairs", test.pairs}};
  if (test.pairs > 0) fields["difference"] = test.mean;
  if (test.pairs > 1) {
    fields["standard_error"] = test.standard_error;
    fields["p"] = test.p;
  }
  return fields;
}

json to_json(const VerticalDiscrepancy& vertical) {
  return {{"loss", vertical.loss},
          {"solver", vertical.solver == OtSolver::exact ? "exact" : "sinkhorn"},
          {"k", vertical.k},
          {"converged", vertical.converged},
          {"iterations", vertical.iterations},
          {"max_marginal_error", vertical.max_marginal_error},
          {"spread_source", vertical.spread_source},
          {"spread_target", vertical.spread_target}};
}

json to_json(const HorizontalDiscrepancy& horizontal) {
  return {
      {"loss", horizontal.loss},
      {"slim_step", horizontal.slim_step == SlimStep::exact ? "exact" : "paper"},
      {"objective", {{"source", horizontal.objective[0]}, {"target", horizontal.objective[1]}}}};
}

json to_json(const ProxyDistance& proxy) {
  return {{"distance", proxy.distance},
          {"error", proxy.error},
          {"train", proxy.train},
          {"held_out", proxy.held_out}};
}

std::vector<std::string> mask_names(Mask mask) {
  if (mask == Mask::none) return {};
  if (mask == Mask::train) return {"train"};
  return {"train", "valid"};
}

}  // namespace

json to_json(const RunResult& result) {
  json fields = json::object();
  if (result.steps) fields["steps"] = *result.steps;
  if (result.best_step) fields["best_step"] = *result.best_step;
  if (!result.baseline.empty()) fields["baseline"] = result.baseline;
  if (!result.model.empty()) fields["model"] = result.model;
  if (result.seed) fields["seed"] = *result.seed;
  if (result.every_seed) fields["every_seed"] = true;
  if (!result.dataset.empty()) fields["dataset"] = result.dataset;
  if (!result.metric.empty()) fields["metric"] = result.metric;
  if (result.valid) fields["valid"] = *result.valid;
  for (const auto& [name, domain] : result.domains) {
    json metrics = domain.metrics;
    metrics["users"] = domain.users;
    metrics["positives"] = domain.positives;
    fields[name] = metrics;
  }
  return fields;
}

json to_json(const EvaluationReport& report) {
  const EvaluationConfig& eval = report.request.eval;
  const Evaluation& evaluation = report.evaluation;
  json fields = metric_values(evaluation.all.metrics);
  fields["domain"] = report.request.domain;
  fields["split"] = report.newcomers ? "newcomers" : split_name(report.request.split);
  fields["protocol"] = eval.candidates > 0 ? "sampled" : "full";
  if (eval.candidates > 0) {
    fields["candidates"] = eval.candidates;
    fields["candidate_seed"] = eval.candidate_seed;
  }
  fields["masked"] = report.newcomers ? json::array({"reviewed"})
                                      : json(mask_names(resolve(eval.mask, report.request.split)));
  fields["users"] = report.held_out.users();
  fields["items"] = report.held_out.items;
  fields["evaluated_users"] = evaluation.all.users;
  fields["skipped_users"] = evaluation.skipped_users;
  fields["positives"] = evaluation.all.positives;
  fields["cold_users"] = to_json(evaluation.cold_users);
  fields["cold_items"] = to_json(evaluation.cold_items);
  if (!evaluation.intervals.empty()) fields["bootstrap"] = eval.bootstrap;
  for (std::size_t i = 0; i < evaluation.intervals.size(); ++i) {
    for (std::size_t m = 0; m <= kUserMetrics; ++m) {
      const Interval& interval = evaluation.intervals[i][m];
      fields["interval"][metric_key(m, evaluation.all.metrics[i].k)] = {interval.low,
                                                                        interval.high};
    }
  }
  if (report.valid) fields["valid"] = *report.valid;
  fields["device"] = report.device;
  fields["seconds"] = {{"read", report.read_seconds}, {"evaluate", report.evaluate_seconds}};
  return fields;
}

json to_json(const BaselineReport& report) {
  json fields = to_json(report.evaluation);
  fields["baseline"] = report.name;
  fields["seconds"]["train"] = report.train_seconds;
  if (report.training) {
    fields["seed"] = report.training->seed;
    fields["epochs"] = report.training->epochs;
    fields["best_epoch"] = report.training->best_epoch;
  }
  for (const BaselineReport::Tried& tried : report.tried) {
    fields["tried"].push_back(
        {{"setting", tried.description}, {"valid", tried.valid}, {"taken", tried.taken}});
  }
  return fields;
}

json to_json(const Comparison& comparison) {
  json fields = {
      {"domain", comparison.domain}, {"reference", comparison.reference}, {"rows", json::array()}};
  for (const ComparedRow& row : comparison.rows) {
    json entry = {{"run", row.run}, {"variant", row.variant}, {"seeds", row.seeds}};
    if (row.validation) {
      entry["validation"] = {{"metric", row.validation->name},
                             {"mean", row.validation->summary.mean},
                             {"sd", row.validation->summary.deviation},
                             {"values", row.validation->values}};
    }
    for (const ComparedMetric& metric : row.metrics) {
      json cell = {{"mean", metric.summary.mean},
                   {"sd", metric.summary.deviation},
                   {"values", metric.values}};
      if (metric.user_error) cell["user_error"] = *metric.user_error;
      if (metric.by_seed) cell["by_seed"] = to_json(*metric.by_seed);
      if (metric.by_user) cell["by_user"] = to_json(*metric.by_user);
      entry["metrics"][metric.name] = cell;
    }
    fields["rows"].push_back(entry);
  }
  return fields;
}

json to_json(const Discrepancy& discrepancy) {
  json fields = {{"shape",
                  {{"source", discrepancy.source_rows},
                   {"target", discrepancy.target_rows},
                   {"attributes", discrepancy.attributes}}},
                 {"device", discrepancy.device},
                 {"precision", discrepancy.precision == ComparePrecision::f64 ? "double" : "float"},
                 {"seconds",
                  {{"vertical", discrepancy.vertical_seconds},
                   {"horizontal", discrepancy.horizontal_seconds}}}};
  if (discrepancy.vertical) fields["vertical"] = to_json(*discrepancy.vertical);
  if (discrepancy.horizontal) fields["horizontal"] = to_json(*discrepancy.horizontal);
  if (discrepancy.proxy) {
    fields["proxy_distance"] = to_json(*discrepancy.proxy);
    fields["seconds"]["proxy_distance"] = discrepancy.proxy_seconds;
  } else {
    fields["seconds"]["read"] = discrepancy.read_seconds;
  }
  return fields;
}

json to_json(const RunDiscrepancy& discrepancy) {
  json fields = {{"users", to_json(discrepancy.users)}, {"items", to_json(discrepancy.items)}};
  if (discrepancy.vertical) fields["vertical"] = *discrepancy.vertical;
  if (discrepancy.horizontal) fields["horizontal"] = *discrepancy.horizontal;
  return fields;
}

json to_json(const Recommendation& list) {
  json fields = {{"user", list.user}, {"known", list.known}, {"items", json::array()}};
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const RecommendedItem& item = list.items[i];
    fields["items"].push_back({{"rank", i + 1},
                               {"item", item.item},
                               {"title", item.title},
                               {"score", item.score},
                               {"because", item.because},
                               {"review", item.words},
                               {"own_words", item.own_words}});
    if (!item.signal.empty()) fields["items"].back()["signal"] = item.signal;
  }
  return fields;
}

json to_json(const NewUserLists& made, const std::string& domain) {
  json fields = {{"domain", domain},
                 {"users", json::array()},
                 {"reviews", made.reviews},
                 {"without_text", made.without_text},
                 {"of_unknown_words", made.of_unknown_words},
                 {"of_unknown_items", made.of_unknown_items},
                 {"unknown_items", made.unknown_items}};
  for (const Recommendation& list : made.users) fields["users"].push_back(to_json(list));
  return fields;
}

json to_json(const ExportReport& report) {
  json files = json::array();
  for (const std::filesystem::path& file : report.files) files.push_back(file.string());
  return {{"files", files}, {"score", report.score}};
}

}  // namespace cfaa
