// cfaa_gpu recommend run/ --user ID: the lists people came for.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/terminal/printable.h"
#include "host/core/terminal/quantity.h"
#include "host/core/terminal/terminal.h"
#include "host/io/atomic_file.h"
#include "host/io/owned_output.h"
#include "host/run/recommend.h"
#include "host/run/run_json.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

constexpr int kTitleColumns = 94;
constexpr int kReasonColumn = 41;  // where the last column of the list begins
constexpr const char* kListsHeader = "user_id\trank\titem_id\tscore\n";

struct Arguments {
  std::string run, data, user, out;
  RecommendRequest request;
  bool all = false, force = false, json = false;
  DeviceFlags device;
};

void show(const Arguments& arguments, const Recommendation& list) {
  if (arguments.json) {
    json fields = to_json(list);
    fields["domain"] = arguments.request.domain;
    print_json(fields);
    return;
  }
  fmt::print("for '{}' ({} known), {} domain:\n\n", printable(list.user),
             counted(list.known, "interaction"), arguments.request.domain);
  const bool signals = !list.items.empty() && !list.items[0].signal.empty();
  fmt::print("{:>4}  {:<24} {:>9}  {}\n", "", "item", "score",
             signals ? "because of" : "nearest of the user's own");
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const RecommendedItem& item = list.items[i];
    const std::string because = printable(fmt::format("{}", fmt::join(item.because, ", ")));
    const std::string row =
        fmt::format("{:>4}  {:<24} {:>9.4f}  {}{}{}", i + 1, printable(item.item), item.score,
                    item.signal, signals && !because.empty() ? ": " : "", because);
    fmt::print("{}\n", wrapped(row, output_columns(), kReasonColumn));
    if (!item.title.empty()) {
      const int columns = output_columns();
      const int room = columns > 12 ? std::min(kTitleColumns, columns - 6) : kTitleColumns;
      fmt::print("      {}\n", cut_to_columns(printable(item.title), room));
    }
    if (!item.words.empty()) fmt::print("      “{}”\n", printable(item.words));
    if (!signals && !item.own_words.empty() && !item.own_words[0].empty()) {
      fmt::print("      of {}: “{}”\n", printable(item.because[0]), printable(item.own_words[0]));
    }
  }
}

void write_all(const Arguments& arguments, Context& context, RankingModel& model) {
  AtomicFile file(arguments.out);
  file.write(kListsHeader);
  recommend_all(context, model, arguments.request, [&](const Recommendation& list) {
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      file.write(fmt::format("{}\t{}\t{}\t{}\n", list.user, i + 1, list.items[i].item,
                             list.items[i].score));
    }
  });
  file.commit();
}

void run(const Arguments& arguments) {
  if (arguments.all ? arguments.out.empty() : arguments.user.empty()) {
    throw Error("give --user ID, or --all and --out FILE for everybody's lists");
  }
  if (arguments.all) check_output(arguments.out, kListsHeader, arguments.force);
  const auto context = arguments.device.make_context();
  const auto model = open_model(*context, arguments.run, arguments.data);
  if (arguments.all) {
    write_all(arguments, *context, *model);
  } else {
    show(arguments, recommend(*context, *model, arguments.user, arguments.request));
  }
}

}  // namespace

void add_recommend(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("recommend", "a user's list, or everybody's");
  command->add_option("run", arguments->run, "what train or 'baseline --out' wrote")->required();
  command->add_option("--user", arguments->user, "the raw id of a user");
  command->add_option("--top", arguments->request.top, "length of a list")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--all", arguments->all, "everybody's lists, to --out");
  command->add_option("--out", arguments->out, "a TSV file: user, rank, item, score; '-': stdout");
  command->add_option("--domain", arguments->request.domain, "whose items")
      ->check(CLI::IsMember({"target", "source"}))
      ->capture_default_str();
  command->add_option("--data", arguments->data, "where the run's data is now");
  command->add_flag("--force", arguments->force, "replace an --out that recommend did not write");
  command->add_flag("--json", arguments->json, "the list as JSON");
  arguments->device.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
