// cfaa_gpu compare runs...: variants and seeds in one table, each row tested against the first.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/eval/significance.h"
#include "host/eval/user_metrics_file.h"
#include "host/io/json_file.h"
#include "host/run/run.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Arguments {
  std::vector<std::string> runs;
  std::vector<std::string> metrics = {"HR@10", "Recall@10", "NDCG@10", "MRR@10"};
  std::string domain = "target";
  bool json = false;
};

// The results of one variant: a run, or the seed-* runs of a folder.
struct Row {
  std::string name, variant, dataset;
  std::map<int64_t, json> by_seed;  // the domain's metrics
  bool every_seed = false;          // nothing random: the one result stands for each seed
  std::vector<UserTable> users;     // of each seed that kept them
};

// Of the folder's name, "seed-3"; 0 where it has no number.
int64_t seed_in_name(const fs::path& place) {
  const std::string name = place.filename().string();
  return name.starts_with("seed-") ? std::atoll(name.c_str() + 5) : 0;
}

void add_result(Row& row, const fs::path& place, const std::string& domain) {
  const fs::path path = place / "result.json";
  if (!fs::exists(path)) {
    throw Error(
        fmt::format("{}: has no result.json; let 'cfaa_gpu train' (or 'baseline --out') "
                    "finish first",
                    place.string()));
  }
  const json result = read_json_object(path);
  if (!result.contains(domain) || !result[domain].is_object()) {
    throw Error(fmt::format("{}: has no metrics of the {} domain", path.string(), domain));
  }
  const json run = is_run(place) ? read_json_object(place / "run.json") : json::object();
  const json config = run.value("config", json::object());
  int64_t seed = seed_in_name(place);
  if (config.contains("train")) seed = config["train"].value("seed", seed);
  seed = result.value("seed", seed);
  if (config.contains("model")) row.variant = config["model"].value("variant", "");
  if (result.contains("baseline")) row.variant = result["baseline"].get<std::string>();
  row.every_seed = result.value("every_seed", false);
  const std::string dataset = result.value("dataset", run.value("dataset", ""));
  if (!row.dataset.empty() && dataset != row.dataset) {
    throw Error(fmt::format("{}: was trained on other data than its sister seeds", place.string()));
  }
  row.dataset = dataset;
  if (!row.by_seed.emplace(seed, result[domain]).second) {
    throw Error(fmt::format("{}: its seed {} is there twice", place.string(), seed));
  }
  const fs::path users = user_metrics_path(place, domain);
  if (fs::exists(users)) row.users.push_back(read_user_metrics(users.string()));
}

Row read_row(const std::string& path, const std::string& domain) {
  Row row;
  row.name = fs::path(path).lexically_normal().string();
  while (row.name.size() > 1 && row.name.back() == '/') row.name.pop_back();
  const std::vector<fs::path> seeds = seeds_of(path);
  for (const fs::path& seed : seeds) add_result(row, seed, domain);
  if (seeds.empty()) add_result(row, path, domain);
  return row;
}

double value_of(const Row& row, const json& metrics, const std::string& metric) {
  if (metrics.contains(metric) && metrics[metric].is_number()) return metrics[metric].get<double>();
  throw Error(fmt::format("{}: has no {}; its eval.k may leave it out, choose with --metrics",
                          row.name, metric));
}

std::vector<double> values_of(const Row& row, const std::string& metric) {
  std::vector<double> values;
  for (const auto& [seed, metrics] : row.by_seed) values.push_back(value_of(row, metrics, metric));
  return values;
}

// row - first, seed by seed where both have the seed.
std::vector<double> differences(const Row& first, const Row& row, const std::string& metric) {
  std::vector<double> result;
  const Row& leading = row.every_seed ? first : row;
  for (const auto& [seed, unused] : leading.by_seed) {
    const auto find = [seed = seed](const Row& of) {
      return of.every_seed ? of.by_seed.begin() : of.by_seed.find(seed);
    };
    const auto mine = find(row), other = find(first);
    if (mine == row.by_seed.end() || other == first.by_seed.end()) continue;
    result.push_back(value_of(row, mine->second, metric) - value_of(first, other->second, metric));
  }
  return result;
}

// A user's value of a metric, averaged over the seeds; by user, in the order of the ids. Empty
// where a seed did not keep it, or the metric is not of users.
std::map<std::string, double> means_by_user(const Row& row, const std::string& metric) {
  std::map<std::string, double> means;
  if (row.users.size() != row.by_seed.size()) return means;
  for (const UserTable& table : row.users) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), metric);
    if (found == table.columns.end()) return {};
    const auto column = static_cast<std::size_t>(found - table.columns.begin());
    for (const auto& [user, value] : table.value) {
      means[user] += value[column] / static_cast<double>(row.users.size());
    }
  }
  return means;
}

// row - first, user by user.
std::vector<double> user_differences(const Row& first, const Row& row, const std::string& metric) {
  const std::map<std::string, double> others = means_by_user(first, metric);
  std::vector<double> result;
  for (const auto& [user, value] : means_by_user(row, metric)) {
    const auto other = others.find(user);
    if (other != others.end()) result.push_back(value - other->second);
  }
  return result;
}

json test_fields(const PairedTest& test) {
  json fields = {{"pairs", test.pairs}};
  if (test.pairs > 0) fields["difference"] = test.mean;
  if (test.pairs > 1) {
    fields["standard_error"] = test.standard_error;
    fields["p"] = test.p;
  }
  return fields;
}

json compare_rows(const Arguments& arguments, const std::vector<Row>& rows) {
  json fields = {{"domain", arguments.domain}, {"rows", json::array()}};
  for (const Row& row : rows) {
    json entry = {{"run", row.name}, {"variant", row.variant}, {"seeds", json::array()}};
    for (const auto& [seed, metrics] : row.by_seed) entry["seeds"].push_back(seed);
    for (const std::string& metric : arguments.metrics) {
      const std::vector<double> values = values_of(row, metric);
      const MeanAndDeviation all = mean_and_deviation(values);
      json cell = {{"mean", all.mean}, {"sd", all.deviation}, {"values", values}};
      if (&row != &rows[0]) {
        cell["by_seed"] = test_fields(paired_t_test(differences(rows[0], row, metric)));
        cell["by_user"] = test_fields(paired_t_test(user_differences(rows[0], row, metric)));
      }
      entry["metrics"][metric] = cell;
    }
    fields["rows"].push_back(entry);
  }
  return fields;
}

// "+0.0123 ± 0.0040  p 0.021, 5 pairs"
std::string test_text(const json& test, const char* none, const char* pairs) {
  if (!test.contains("difference")) return none;
  const std::string difference = fmt::format("{:+.4f}", test["difference"].get<double>());
  if (!test.contains("p")) return difference + fmt::format("  one {}: no test", pairs);
  return fmt::format("{} ± {:.4f}  p {:.2g}, {} {}s", difference,
                     test["standard_error"].get<double>(), test["p"].get<double>(),
                     test["pairs"].get<int64_t>(), pairs);
}

void print_table(const Arguments& arguments, const json& fields) {
  std::size_t width = 8;
  for (const json& row : fields["rows"]) {
    width = std::max(width, row["run"].get<std::string>().size());
  }
  fmt::print("{} domain, test split, mean ± sd over seeds\n\n", arguments.domain);
  fmt::print("{:<{}}  {:<10} {:>5}", "run", width, "variant", "seeds");
  for (const std::string& metric : arguments.metrics) fmt::print("  {:<15}", metric);
  for (const json& row : fields["rows"]) {
    fmt::print("\n{:<{}}  {:<10} {:>5}", row["run"].get<std::string>(), width,
               row["variant"].get<std::string>(), row["seeds"].size());
    for (const std::string& metric : arguments.metrics) {
      const json& cell = row["metrics"][metric];
      fmt::print("  {:<15}", row["seeds"].size() > 1
                                 ? fmt::format("{:.4f} ± {:.4f}", cell["mean"].get<double>(),
                                               cell["sd"].get<double>())
                                 : fmt::format("{:.4f}", cell["mean"].get<double>()));
    }
  }
  fmt::print("\n");
  if (fields["rows"].size() < 2) return;
  fmt::print(
      "\nagainst {}: difference ± standard error (p of the paired t-test). By seed: would another "
      "training\nsay the same? By user, each averaged over the seeds: would other users?\n\n",
      fields["rows"][0]["run"].get<std::string>());
  for (std::size_t r = 1; r < fields["rows"].size(); ++r) {
    const json& row = fields["rows"][r];
    for (const std::string& metric : arguments.metrics) {
      const json& cell = row["metrics"][metric];
      fmt::print("{:<{}}  {:<12} by seed {:<38} by user {}\n", row["run"].get<std::string>(), width,
                 metric, test_text(cell["by_seed"], "none in common", "seed"),
                 test_text(cell["by_user"], "not kept", "user"));
    }
  }
}

void run(const Arguments& arguments) {
  std::vector<Row> rows;
  for (const std::string& path : arguments.runs) {
    rows.push_back(read_row(path, arguments.domain));
    const Row& row = rows.back();
    if (!row.dataset.empty() && !rows[0].dataset.empty() && row.dataset != rows[0].dataset) {
      throw Error(fmt::format("{}: was trained on other data than {}; compare runs of one dataset",
                              row.name, rows[0].name));
    }
  }
  const json fields = compare_rows(arguments, rows);
  if (arguments.json) {
    print_json(fields);
  } else {
    print_table(arguments, fields);
  }
}

}  // namespace

void add_compare(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "variants and seeds in one table, each row tested against the first");
  command
      ->add_option("runs", arguments->runs,
                   "what train or 'baseline --out' wrote; seed-* folders in one count as one row")
      ->required();
  command->add_option("--metrics", arguments->metrics, "columns, such as NDCG@10,HR@5")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--domain", arguments->domain, "target or source")
      ->capture_default_str()
      ->check(CLI::IsMember({"target", "source"}));
  command->add_flag("--json", arguments->json, "machine output on stdout");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
