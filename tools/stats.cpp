// cfaa_gpu stats data/: what a prepared directory holds.

#include "host/data/statistics.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/core/terminal/quantity.h"
#include "host/run/directory/directory_kind.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

using Side = const DomainStatistics&;

std::string percent(double share) {
  return fmt::format("{:.4g} %", 100 * share);
}

template <class Value>
void row(const char* name, const Statistics& s, const Value& value) {
  fmt::print("{:<32}{:>16}{:>16}\n", name, value(s.source), value(s.target));
}

void print_totals(const Statistics& s) {
  fmt::print("{:<32}{:>16}{:>16}\n", "", "source", "target");
  row("items", s, [](Side d) { return d.items; });
  row("users", s, [](Side d) { return d.users; });
  row("interactions", s, [](Side d) { return d.interactions; });
  row("density", s, [](Side d) { return percent(d.density); });
  row("positives", s, [](Side d) { return d.positives; });
  row("most popular item's share", s, [](Side d) { return percent(d.top_item_share); });
  row("most popular tenth's share", s, [](Side d) { return percent(d.top_tenth_share); });
  row("training reviews with text", s, [](Side d) { return d.reviews_with_text; });
  row("  mean length (bytes)", s,
      [](Side d) { return static_cast<int64_t>(d.review_bytes_mean + 0.5); });
  row("  median length", s, [](Side d) { return d.review_bytes_median; });
  row("  longest", s, [](Side d) { return d.review_bytes_longest; });
  fmt::print("in both domains: {}, {}\n", counted(s.common_users, "user"),
             counted(s.common_items, "item"));
}

// Cold: in the split, but without a training interaction.
void print_splits(const Statistics& s) {
  fmt::print("\n{:<14}{:>14}{:>11}{:>9}{:>9}{:>12}{:>12}\n", "split", "interactions", "positives",
             "users", "items", "cold users", "cold items");
  for (const DomainStatistics* domain : {&s.source, &s.target}) {
    for (const Split split : {Split::train, Split::valid, Split::test}) {
      const SplitStatistics& p = domain->splits[static_cast<std::size_t>(split)];
      fmt::print("{:<14}{:>14}{:>11}{:>9}{:>9}{:>12}{:>12}\n",
                 domain->name + " " + split_name(split), p.interactions, p.positives, p.users,
                 p.items, p.cold_users, p.cold_items);
    }
  }
}

void print_plot(const DomainStatistics& domain) {
  fmt::print(
      "\ninteractions of the {}'s items by their rank, most popular first (both logarithmic)\n",
      domain.name);
  for (const std::string& line : long_tail_plot(domain.item_interactions, 60, 8)) {
    fmt::print("{}\n", line);
  }
}

}  // namespace

void add_stats(CLI::App& app) {
  CLI::App* command = app.add_subcommand("stats", "what a prepared directory holds");
  struct Arguments {
    std::string data;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  command->add_option("data", arguments->data, "a directory that prepare made")->required();
  command->add_flag("--json", arguments->json, "machine output on stdout");
  command->callback([arguments] {
    require_prepared(arguments->data);
    const Statistics statistics = compute_statistics(load_dataset(arguments->data));
    if (arguments->json) {
      print_json(to_json(statistics));
      return;
    }
    print_totals(statistics);
    print_splits(statistics);
    print_plot(statistics.source);
    print_plot(statistics.target);
  });
}

}  // namespace cfaa::tools
