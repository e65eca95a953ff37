// cfaa_gpu compare runs...: variants and seeds in one table, each row tested against the first
// given.

#include <fmt/format.h>

#include <algorithm>

#include "host/core/printable.h"
#include "host/run/compare.h"
#include "host/run/run_json.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

struct Arguments {
  CompareRequest request;
  bool json = false;
};

// "+0.0123 ± 0.0040  p 0.021, 5 seeds"
std::string test_text(const PairedTest& test, const char* none, const char* pairs) {
  if (test.pairs == 0) return none;
  const std::string difference = fmt::format("{:+.4f}", test.mean);
  if (test.pairs == 1) return difference + fmt::format("  one {}: no test", pairs);
  return fmt::format("{} ± {:.4f}  p {:.2g}, {} {}s", difference, test.standard_error, test.p,
                     test.pairs, pairs);
}

std::string summary_text(const ComparedMetric& metric) {
  return metric.values.size() > 1
             ? fmt::format("{:.4f} ± {:.4f}", metric.summary.mean, metric.summary.deviation)
             : fmt::format("{:.4f}", metric.summary.mean);
}

std::size_t name_width(const Comparison& comparison) {
  std::size_t width = 8;
  for (const ComparedRow& row : comparison.rows) width = std::max(width, row.run.size());
  return width;
}

// The metric that every row was validated by; "" where they differ, or none was.
std::string validation_metric(const Comparison& comparison) {
  std::string name;
  for (const ComparedRow& row : comparison.rows) {
    if (!row.validation) continue;
    if (!name.empty() && row.validation->name != name) return "";
    name = row.validation->name;
  }
  return name;
}

void print_table(const Comparison& comparison) {
  const std::size_t width = name_width(comparison);
  const std::string valid = validation_metric(comparison);
  fmt::print("{} domain, mean ± sd over seeds{}\n\n", comparison.domain,
             valid.empty() ? "" : "; the best validation first");
  fmt::print("{:<{}}  {:<10} {:>5}  {:<15}", "", width, "", "", valid.empty() ? "" : "validation");
  fmt::print("  test\n{:<{}}  {:<10} {:>5}  {:<15}", "run", width, "variant", "seeds", valid);
  for (const ComparedMetric& metric : comparison.rows[0].metrics) {
    fmt::print("  {:<15}", printable(metric.name));
  }
  for (const ComparedRow& row : comparison.rows) {
    fmt::print("\n{:<{}}  {:<10} {:>5}", row.run, width, row.variant, row.seeds.size());
    fmt::print("  {:<15}", valid.empty()    ? ""
                           : row.validation ? summary_text(*row.validation)
                                            : "not kept");
    for (const ComparedMetric& metric : row.metrics) fmt::print("  {:<15}", summary_text(metric));
  }
  fmt::print("\n");
}

void print_tests(const Comparison& comparison) {
  const std::size_t width = name_width(comparison);
  fmt::print(
      "\ntest against {}: difference ± standard error (p of the paired t-test). By seed: would\n"
      "another training say the same? By user, each averaged over the seeds: would other "
      "users?\n\n",
      comparison.reference);
  for (const ComparedRow& row : comparison.rows) {
    for (const ComparedMetric& metric : row.metrics) {
      if (!metric.by_seed) continue;
      fmt::print("{:<{}}  {:<12} by seed {:<38} by user {}\n", row.run, width, metric.name,
                 test_text(*metric.by_seed, "none in common", "seed"),
                 test_text(*metric.by_user, "not kept", "user"));
    }
  }
}

void run(const Arguments& arguments) {
  const Comparison comparison = compare_runs(arguments.request);
  if (arguments.json) {
    print_json(to_json(comparison));
    return;
  }
  print_table(comparison);
  if (comparison.rows.size() > 1) print_tests(comparison);
}

}  // namespace

void add_compare(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "variants and seeds in one table, each row tested against the first given");
  command
      ->add_option("runs", arguments->request.runs,
                   "what train or 'baseline --out' wrote; seed-* folders in one count as one row")
      ->required();
  command->add_option("--metrics", arguments->request.metrics, "columns, such as NDCG@10,HR@5")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--domain", arguments->request.domain, "target or source")
      ->capture_default_str()
      ->check(CLI::IsMember({"target", "source"}));
  command->add_flag("--json", arguments->json, "machine output on stdout");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
