#pragma once

// What `evaluate` and `baseline` share: the flags that say how lists are measured, and the report
// as a table.

#include <functional>
#include <string>

#include "host/run/evaluate.h"
#include "tools/command.h"

namespace cfaa::tools {

struct EvaluationFlags {
  std::string domain = "target", split = "test", per_user, lists;
  ConfigFlags config;
  EvaluationConfig eval;
  bool force = false, json = false;

  // --domain, --split, the configuration, --per-user, --lists, --force and --json. Those of the
  // `eval` section are added by the command, which has to hand over what add_option_flags gives it.
  void add_to(CLI::App& command);
  // Reads the `eval` section of the configuration, then applies the flags of the command line.
  void read(const std::function<void()>& apply_flags);
  // Error where a file to write is there and was not written by evaluate, without --force.
  void check_outputs() const;
  EvaluationRequest request() const;
  // The files of --per-user and --lists.
  void write_files(const EvaluationReport& report, const Domain& domain) const;
};

// The table.
void print_report(const EvaluationReport& report);

}  // namespace cfaa::tools
