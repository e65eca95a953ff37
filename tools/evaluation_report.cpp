#include "tools/evaluation_report.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/device/make_context.h"
#include "host/eval/user_metrics_file.h"
#include "host/io/atomic_file.h"

namespace cfaa::tools {
using nlohmann::json;

void add_metrics(json& fields, const std::vector<MetricsAt>& metrics) {
  for (const MetricsAt& at : metrics) {
    for (std::size_t m = 0; m < kMetrics; ++m) fields[metric_key(m, at.k)] = at.value[m];
  }
}

namespace {

json part_fields(const Part& part) {
  json fields = {{"users", part.users}, {"positives", part.positives}};
  if (part.users > 0) add_metrics(fields, part.metrics);
  return fields;
}

std::vector<std::string> mask_names(Mask mask) {
  if (mask == Mask::none) return {};
  if (mask == Mask::train) return {"train"};
  return {"train", "valid"};
}

json report_fields(const EvaluationFlags& flags, const Evaluation& evaluation,
                   const HeldOut& held_out, Mask mask) {
  json fields;
  fields["domain"] = flags.domain;
  fields["split"] = flags.split;
  fields["protocol"] = flags.eval.candidates > 0 ? "sampled" : "full";
  if (flags.eval.candidates > 0) {
    fields["candidates"] = flags.eval.candidates;
    fields["candidate_seed"] = flags.eval.candidate_seed;
  }
  fields["masked"] = mask_names(mask);
  fields["users"] = held_out.users();
  fields["items"] = held_out.items;
  fields["evaluated_users"] = evaluation.all.users;
  fields["skipped_users"] = evaluation.skipped_users;
  fields["positives"] = evaluation.all.positives;
  add_metrics(fields, evaluation.all.metrics);
  fields["cold_users"] = part_fields(evaluation.cold_users);
  fields["cold_items"] = part_fields(evaluation.cold_items);
  if (!evaluation.intervals.empty()) {
    fields["bootstrap"] = flags.eval.bootstrap;
    for (std::size_t i = 0; i < evaluation.intervals.size(); ++i) {
      for (std::size_t m = 0; m <= kUserMetrics; ++m) {
        const Interval& interval = evaluation.intervals[i][m];
        fields["interval"][metric_key(m, evaluation.all.metrics[i].k)] = {interval.low,
                                                                          interval.high};
      }
    }
  }
  return fields;
}

void print_table(const Evaluation& evaluation) {
  fmt::print("\n{:<11}", "");
  for (const MetricsAt& at : evaluation.all.metrics) {
    fmt::print("{:<26}", fmt::format("@{}", at.k));
  }
  for (std::size_t m = 0; m < kMetrics; ++m) {
    fmt::print("\n{:<11}", kMetricNames[m]);
    for (std::size_t i = 0; i < evaluation.all.metrics.size(); ++i) {
      std::string cell = fmt::format("{:.4f}", evaluation.all.metrics[i].value[m]);
      if (m <= kUserMetrics && !evaluation.intervals.empty()) {
        const Interval& interval = evaluation.intervals[i][m];
        cell += fmt::format(" [{:.4f}, {:.4f}]", interval.low, interval.high);
      }
      fmt::print("{:<26}", cell);
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
  fmt::print("{:<11} {} users, {} positives: HR@{} {:.4f}, Recall@{} {:.4f}, NDCG@{} {:.4f}\n",
             name, part.users, part.positives, at.k, at.value[0], at.k, at.value[1], at.k,
             at.value[2]);
}

void print_people(const json& fields, const Evaluation& evaluation) {
  const auto masked = fields["masked"].get<std::vector<std::string>>();
  fmt::print("{} domain, {} split: {} of {} users ranked over {} items, {} positives to find\n",
             fields["domain"].get<std::string>(), fields["split"].get<std::string>(),
             fields["evaluated_users"].get<int64_t>(), fields["users"].get<int64_t>(),
             fields["items"].get<int64_t>(), fields["positives"].get<int64_t>());
  fmt::print("{}; masked: {}; {} users without a held-out positive skipped\n",
             fields["protocol"] == "full" ? "full ranking"
                                          : fmt::format("sampled ranking over {} items a user",
                                                        fields["candidates"].get<int64_t>()),
             masked.empty() ? "nothing" : fmt::format("{}", fmt::join(masked, ", ")),
             fields["skipped_users"].get<int64_t>());
  print_table(evaluation);
  fmt::print("\n");
  print_part("cold users", evaluation.cold_users);
  print_part("cold items", evaluation.cold_items);
}

void write_lists(const std::string& path, const Lists& lists, const HeldOut& held_out,
                 const Domain& domain) {
  AtomicFile file(path);
  file.write("user_id\trank\titem_id\tscore\thit\n");
  for (std::size_t row = 0; row < lists.user.size(); ++row) {
    const int32_t user = lists.user[row];
    for (std::size_t i = 0; i < static_cast<std::size_t>(lists.k); ++i) {
      const std::size_t at = row * static_cast<std::size_t>(lists.k) + i;
      if (lists.item[at] < 0) break;
      file.write(fmt::format("{}\t{}\t{}\t{}\t{}\n", domain.users[user], i + 1,
                             domain.items[lists.item[at]], lists.score[at],
                             held_out.positives.contains(user, lists.item[at]) ? 1 : 0));
    }
  }
  file.commit();
}

}  // namespace

void EvaluationFlags::add_to(CLI::App& command) {
  command.add_option("--domain", domain, "target or source")
      ->capture_default_str()
      ->check(CLI::IsMember({"target", "source"}));
  command.add_option("--split", split, "test or valid")
      ->capture_default_str()
      ->check(CLI::IsMember({"test", "valid"}));
  command.add_option("--config", config, "configuration with an 'eval' section");
  command.add_option("--per-user", per_user, "file for each user's metrics (.tsv)");
  command.add_option("--lists", lists, "file for each user's list (.tsv)");
  command.add_flag("--json", json, "machine output on stdout");
}

void EvaluationFlags::read(const std::function<void()>& apply_flags) {
  const nlohmann::json file = read_config(config);
  if (file.contains("eval")) evaluation_option_set(eval).read(file["eval"], config);
  apply_flags();
}

EvaluationReport measure(Context& context, const EvaluationFlags& flags, const Domain& domain,
                         const Scorer& scorer) {
  const auto start = std::chrono::steady_clock::now();
  const Split split = flags.held_out_split();
  const HeldOut held_out = make_held_out(domain, split, flags.eval.mask);
  if (held_out.positives.item.empty()) {
    throw Error(
        fmt::format("{}: its {} split has no positive interaction, so that there is nothing "
                    "to measure",
                    domain.path.string(), flags.split));
  }
  EvaluationReport report;
  report.evaluation = evaluate(context, scorer, held_out, flags.eval.options());
  if (flags.eval.candidates > 0) {
    log_warning(
        "sampled metrics are biased and may order models differently from the full ranking; "
        "compare them only with the same --candidates and --candidate-seed");
  }
  report.fields =
      report_fields(flags, report.evaluation, held_out, resolve(flags.eval.mask, split));
  report.fields["device"] = device_label(context);
  report.fields["seconds"]["evaluate"] = seconds_since(start);
  if (!flags.per_user.empty()) {
    write_user_metrics(flags.per_user, report.evaluation.per_user, domain.users);
  }
  if (!flags.lists.empty()) write_lists(flags.lists, report.evaluation.lists, held_out, domain);
  return report;
}

void print_report(const EvaluationFlags& flags, const EvaluationReport& report) {
  if (flags.json) {
    print_json(report.fields);
  } else {
    print_people(report.fields, report.evaluation);
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace cfaa::tools
