#pragma once

// What `evaluate` and `baseline` share: the flags that say how lists are measured, the measuring,
// and the report, as a table or as JSON.

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "host/core/context.h"
#include "host/data/dataset.h"
#include "host/eval/evaluation_config.h"
#include "tools/command.h"

namespace cfaa::tools {

struct EvaluationFlags {
  std::string domain = "target", split = "test", config, per_user, lists;
  EvaluationConfig eval;
  bool json = false;

  // --domain, --split, --config, --per-user, --lists and --json. Those of the `eval` section are
  // added by the command, which has to hand over what add_option_flags gives it.
  void add_to(CLI::App& command);
  // Reads the `eval` section of --config, then applies the flags of the command line.
  void read(const std::function<void()>& apply_flags);
  Split held_out_split() const { return split == "test" ? Split::test : Split::valid; }
};

struct EvaluationReport {
  Evaluation evaluation;
  nlohmann::json fields;  // what --json prints
};

// Ranks the split's users, measures the lists, and writes the files that were asked for. Error
// where the split has no positives; NanScore where a score is NaN.
EvaluationReport measure(Context& context, const EvaluationFlags& flags, const Domain& domain,
                         const Scorer& scorer);

// The table, or --json.
void print_report(const EvaluationFlags& flags, const EvaluationReport& report);

// Every metric of every k, as "NDCG@10": value.
void add_metrics(nlohmann::json& fields, const std::vector<MetricsAt>& metrics);

double seconds_since(std::chrono::steady_clock::time_point start);

}  // namespace cfaa::tools
