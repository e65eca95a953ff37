// cfaa_gpu compare runs...: variants and seeds in one table, each row tested against the first
// given.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "host/core/terminal/printable.h"
#include "host/run/compare.h"
#include "host/run/run_json.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  CompareRequest request;
  bool json = false;
};

// "+0.0123 ± 0.0040  p 0.021, 5 seeds"
std::string test_text(const PairedTest& test, const char* none, const char* pairs) {
  if (test.pairs == 0) return none;
  if (test.pairs == 1) return fmt::format("{:+.4f}  one {}: no test", test.mean, pairs);
  return fmt::format("{:+.4f} ± {:.4f}  p {:.2g}, {} {}s", test.mean, test.standard_error, test.p,
                     test.pairs, pairs);
}

// "0.4240", and over several seeds "0.4240 ± .0012".
std::string summary_text(const ComparedMetric& metric) {
  const std::string mean = fmt::format("{:.4f}", metric.summary.mean);
  if (metric.values.size() == 1) return mean;
  return mean + " ± " + fmt::format("{:.4f}", metric.summary.deviation).substr(1);
}

// The folder that all runs lie in, which need not be said in every row; "" where there is none.
std::string shared_folder(const Comparison& comparison) {
  std::string shared = fs::path(comparison.rows[0].run).parent_path().string();
  const auto holds = [](const std::string& folder, const std::string& path) {
    return path.starts_with(folder + "/");
  };
  for (const ComparedRow& row : comparison.rows) {
    while (!shared.empty() && !holds(shared, row.run)) {
      const std::string above = fs::path(shared).parent_path().string();
      shared = above == shared ? "" : above;
    }
  }
  return comparison.rows.size() > 1 ? shared : "";
}

std::size_t name_width(const Comparison& comparison, std::size_t left_out) {
  std::size_t width = 8;
  for (const ComparedRow& row : comparison.rows) {
    width = std::max(width, row.run.size() - left_out);
  }
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

void print_table(const Comparison& comparison, const std::string& folder) {
  const std::size_t left_out = folder.empty() ? 0 : folder.size() + 1;
  const std::size_t width = name_width(comparison, left_out);
  std::size_t variant_width = 10;
  for (const ComparedRow& row : comparison.rows) {
    variant_width = std::max(variant_width, row.variant.size());
  }
  const std::string valid = validation_metric(comparison);
  const bool several = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                   [](const ComparedRow& row) { return row.seeds.size() > 1; });
  const std::size_t cell = several ? 14 : 10;
  print_line(fmt::format("{} domain, mean ± sd over seeds{}{}", comparison.domain,
                         valid.empty() ? "" : "; the best validation first",
                         folder.empty() ? "" : "; runs in " + folder));
  fmt::print("\n");
  const auto start = [&](const std::string& run, const std::string& variant,
                         const std::string& seeds, const std::string& validation) {
    fmt::print("{:<{}} {:<{}} {:>5}", printable(run), width, printable(variant), variant_width,
               seeds);
    if (!valid.empty()) fmt::print(" {:<{}}", validation, cell);
  };
  start("", "", "", "validation");
  fmt::print(" test\n");
  start("run", "variant", "seeds", valid);
  const auto print_metrics = [&](const std::vector<ComparedMetric>& metrics, const auto& text) {
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      fmt::print(" {:<{}}", text(metrics[m]), m + 1 < metrics.size() ? cell : 0);
    }
    fmt::print("\n");
  };
  print_metrics(comparison.rows[0].metrics,
                [](const ComparedMetric& metric) { return printable(metric.name); });
  for (const ComparedRow& row : comparison.rows) {
    start(row.run.substr(left_out), row.variant, std::to_string(row.seeds.size()),
          row.validation ? summary_text(*row.validation) : "not kept");
    print_metrics(row.metrics, summary_text);
  }
}

void print_tests(const Comparison& comparison, const std::string& folder) {
  const std::size_t left_out = folder.empty() ? 0 : folder.size() + 1;
  fmt::print("\n");
  print_line(
      fmt::format("test against {}: difference ± standard error, p of the paired t-test. By user, "
                  "each averaged over the seeds: would other users say the same? By seed: would "
                  "another training?",
                  comparison.reference.substr(left_out)));
  for (const ComparedRow& row : comparison.rows) {
    if (row.metrics.empty() || !row.metrics[0].by_seed) continue;
    fmt::print("\n{}\n", printable(row.run.substr(left_out)));
    for (const ComparedMetric& metric : row.metrics) {
      fmt::print("  {:<11} by user  {}\n", printable(metric.name),
                 test_text(*metric.by_user, "not kept", "user"));
      if (metric.by_seed->pairs == 1) continue;
      fmt::print("  {:<11} by seed  {}\n", "",
                 test_text(*metric.by_seed, "none in common", "seed"));
    }
    if (row.metrics[0].by_seed->pairs == 1) {
      fmt::print("  {:<11} by seed  one seed: no test\n", "");
    }
  }
}

void run(const Arguments& arguments) {
  const Comparison comparison = compare_runs(arguments.request);
  if (arguments.json) {
    print_json(to_json(comparison));
    return;
  }
  const std::string folder = shared_folder(comparison);
  print_table(comparison, folder);
  if (comparison.rows.size() > 1) print_tests(comparison, folder);
}

}  // namespace

void add_compare(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "variants and seeds in one table, each row tested against the first given");
  add_comparison_flags(*command, arguments->request.runs, arguments->request.metrics,
                       arguments->request.domain);
  command->add_flag("--json", arguments->json, "machine output on stdout");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
