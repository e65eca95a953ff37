#include "tools/tables/evaluation_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/core/terminal/quantity.h"
#include "host/eval/user_metrics_file.h"
#include "host/io/owned_output.h"
#include "host/run/configuration.h"

namespace cfaa::tools {
namespace {

const char* mask_text(Mask mask) {
  if (mask == Mask::none) return "nothing";
  return mask == Mask::train ? "train" : "train, valid";
}

void print_table(const Evaluation& evaluation) {
  const std::size_t depths = evaluation.all.metrics.size();
  // The last cell has no spaces after it.
  const auto print_cell = [&](const std::string& cell, std::size_t i) {
    fmt::print("{:<{}}", cell, i + 1 < depths ? 23 : 0);
  };
  fmt::print("\n{:<11}", "");
  for (std::size_t i = 0; i < depths; ++i) {
    print_cell(fmt::format("@{}", evaluation.all.metrics[i].k), i);
  }
  for (std::size_t m = 0; m < kMetrics; ++m) {
    fmt::print("\n{:<11}", kMetricNames[m]);
    for (std::size_t i = 0; i < depths; ++i) {
      std::string cell = fmt::format("{:.4f}", evaluation.all.metrics[i].value[m]);
      if (m <= kUserMetrics && !evaluation.intervals.empty()) {
        const Interval& interval = evaluation.intervals[i][m];
        cell += fmt::format(" [{:.3f}, {:.3f}]", interval.low, interval.high);
      }
      print_cell(cell, i);
    }
  }
  fmt::print("\n");
}

void print_part(const char* name, const Part& part) {
  if (part.users == 0) {
    fmt::print("{:<11} none held out\n", name);
    return;
  }
  const MetricsAt& at = part.metrics[part.metrics.size() / 2];
  print_line(fmt::format("{:<11} {}, {}: HR@{} {:.4f}, Recall@{} {:.4f}, NDCG@{} {:.4f}", name,
                         counted(part.users, "user"), counted(part.positives, "positive"), at.k,
                         at.value[0], at.k, at.value[1], at.k, at.value[2]));
}

}  // namespace

void EvaluationFlags::add_to(CLI::App& command) {
  command.add_option("--domain", domain, "target or source")
      ->capture_default_str()
      ->check(CLI::IsMember({"target", "source"}));
  command.add_option("--split", split, "test or valid")
      ->capture_default_str()
      ->check(CLI::IsMember({"test", "valid"}));
  config.add_to(command, "a configuration; its 'eval' section is read");
  command.add_option("--per-user", per_user, "file for each user's metrics (.tsv)");
  command.add_option("--lists", lists, "file for each user's list (.tsv)");
  command.add_flag("--force", force, "replace outputs that this command did not write");
  command.add_flag("--json", json, "machine output on stdout");
}

void EvaluationFlags::read(const std::function<void()>& apply_flags) {
  Configuration configuration;
  configuration.run.eval = eval;
  config.apply_to(configuration);
  eval = configuration.run.eval;
  apply_flags();
}

void EvaluationFlags::check_outputs() const {
  if (!per_user.empty()) check_output(per_user, kUserMetricsHeader, force);
  if (!lists.empty()) check_output(lists, kListsWithHitsHeader, force);
}

EvaluationRequest EvaluationFlags::request() const {
  return {domain, split == "test" ? Split::test : Split::valid, eval};
}

void EvaluationFlags::write_files(const EvaluationReport& report, const Domain& of) const {
  if (!per_user.empty()) write_user_metrics(per_user, report.evaluation.per_user, of.users);
  if (!lists.empty()) write_lists(lists, report, of);
}

void print_report(const EvaluationReport& report) {
  const EvaluationRequest& request = report.request;
  const Evaluation& evaluation = report.evaluation;
  print_line(fmt::format(
      "{} domain, {}: {} of {} ranked over {}, {} to find", request.domain,
      report.newcomers ? "newcomers" : fmt::format("{} split", split_name(request.split)),
      evaluation.all.users, counted(report.held_out.users(), "user"),
      counted(report.held_out.items, "item"), counted(evaluation.all.positives, "positive")));
  print_line(fmt::format(
      "{}; masked: {}; {} without a held-out positive skipped",
      request.eval.candidates == 0
          ? "full ranking"
          : fmt::format("sampled ranking over {} items a user", request.eval.candidates),
      report.newcomers ? "what they reviewed"
                       : mask_text(resolve(request.eval.mask, request.split)),
      counted(evaluation.skipped_users, "user")));
  print_table(evaluation);
  fmt::print("\n");
  print_part("cold users", evaluation.cold_users);
  print_part("cold items", evaluation.cold_items);
}

}  // namespace cfaa::tools
