// cfaa_gpu stats data/: what a prepared directory holds.

#include "host/data/statistics.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/command.h"

namespace cfaa::tools {
namespace {

template <class Value>
void row(const char* name, const Value& value, const Statistics& s) {
  fmt::print("{:<34}{:>14}{:>14}\n", name, value(s.source), value(s.target));
}

void print_table(const Statistics& s) {
  using D = const DomainStatistics&;
  const auto percent = [](double share) { return fmt::format("{:.4g} %", 100 * share); };
  fmt::print("{:<34}{:>14}{:>14}\n", "", "source", "target");
  row(
      "items", [](D d) { return d.items; }, s);
  row(
      "users", [](D d) { return d.users; }, s);
  row(
      "interactions", [](D d) { return d.interactions; }, s);
  row(
      "density", [&](D d) { return percent(d.density); }, s);
  row(
      "positives", [](D d) { return d.positives; }, s);
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    const auto i = static_cast<std::size_t>(split);
    const std::string name = split_name(split);
    row((name + ": interactions").c_str(), [&](D d) { return d.splits[i].interactions; }, s);
    row((name + ": positives").c_str(), [&](D d) { return d.splits[i].positives; }, s);
    row((name + ": users, items").c_str(),
        [&](D d) { return fmt::format("{}, {}", d.splits[i].users, d.splits[i].items); }, s);
    if (split == Split::train) continue;
    row((name + ": cold users, cold items").c_str(),
        [&](D d) { return fmt::format("{}, {}", d.splits[i].cold_users, d.splits[i].cold_items); },
        s);
  }
  row(
      "training reviews with text", [](D d) { return d.reviews_with_text; }, s);
  row(
      "review length, mean (bytes)", [](D d) { return fmt::format("{:.1f}", d.review_bytes_mean); },
      s);
  row(
      "review length, median, longest",
      [](D d) { return fmt::format("{}, {}", d.review_bytes_median, d.review_bytes_longest); }, s);
  row(
      "share of the most popular item", [&](D d) { return percent(d.top_item_share); }, s);
  row(
      "share of the most popular tenth", [&](D d) { return percent(d.top_tenth_share); }, s);
  fmt::print("{:<34}{:>14}\n", "users, items in both domains",
             fmt::format("{}, {}", s.common_users, s.common_items));
}

void print_plot(const DomainStatistics& domain) {
  fmt::print(
      "\ninteractions of the {}'s items, from the most to the least popular (both axes "
      "logarithmic)\n",
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
    const Statistics statistics = compute_statistics(load_dataset(arguments->data));
    if (arguments->json) {
      print_json(to_json(statistics));
      return;
    }
    print_table(statistics);
    print_plot(statistics.source);
    print_plot(statistics.target);
  });
}

}  // namespace cfaa::tools
