// cfaa_gpu recommend run/ --user ID: the lists people came for.
// cfaa_gpu recommend run/ --reviews new.jsonl: those of people who were not in the data.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/terminal/printable.h"
#include "host/core/terminal/quantity.h"
#include "host/core/terminal/terminal.h"
#include "host/io/atomic_file.h"
#include "host/io/owned_output.h"
#include "host/run/newcomers.h"
#include "host/run/recommend.h"
#include "host/run/run_json.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

constexpr int kTitleColumns = 94;
constexpr int kReasonColumn = 41;  // where the last column of the list begins
constexpr const char* kListsHeader = "user_id\trank\titem_id\tscore\n";
constexpr std::size_t kNamed = 5;  // unknown items that are named to a person

struct Arguments {
  std::string run, data, user, out, columns, encoder;
  std::vector<std::string> reviews;
  RecommendRequest request;
  bool all = false, force = false, json = false;
  DeviceFlags device;
};

void show(const Arguments& arguments, const Recommendation& list) {
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

void append(AtomicFile& file, const Recommendation& list) {
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    file.write(
        fmt::format("{}\t{}\t{}\t{}\n", list.user, i + 1, list.items[i].item, list.items[i].score));
  }
}

void write_all(const Arguments& arguments, Context& context, RankingModel& model) {
  AtomicFile file(arguments.out);
  file.write(kListsHeader);
  recommend_all(context, model, arguments.request,
                [&](const Recommendation& list) { append(file, list); });
  file.commit();
}

void recommend_user(const Arguments& arguments, Context& context, RankingModel& model) {
  const Recommendation list = recommend(context, model, arguments.user, arguments.request);
  if (!arguments.json) return show(arguments, list);
  json fields = to_json(list);
  fields["domain"] = arguments.request.domain;
  print_json(fields);
}

// What of the reviews could not be used as it was.
void tell_of(const NewUserLists& made, const std::string& domain) {
  if (made.of_unknown_items > 0) {
    std::vector<std::string> named;
    for (const std::string& item : made.unknown_items) {
      if (named.size() < kNamed) named.push_back(printable(item));
    }
    const std::size_t others = made.unknown_items.size() - named.size();
    log_info(fmt::format("{} of {} of items that the {} domain does not have: {}{}",
                         made.of_unknown_items, counted(made.reviews, "review is", "reviews are"),
                         domain, fmt::join(named, ", "),
                         others > 0 ? fmt::format(" and {} others", others) : ""));
  }
  if (made.without_text > 0) {
    log_info(fmt::format("{} of {} without text", made.without_text,
                         counted(made.reviews, "review is", "reviews are")));
  }
  if (made.of_unknown_words > 0) {
    log_info(fmt::format("{} of {} in words that the data never use, another language perhaps",
                         made.of_unknown_words, counted(made.reviews, "review is", "reviews are")));
  }
}

void recommend_newcomers(const Arguments& arguments, Context& context, RankingModel& model) {
  const std::string& domain = arguments.request.domain;
  const Newcomers newcomers(context, model, domain,
                            open_review_reader(context, model, arguments.encoder));
  const std::vector<NewReview> reviews =
      read_new_reviews(arguments.reviews, model, domain, arguments.columns, context.threads());
  const bool to_file = !arguments.out.empty();
  const NewUserLists made =
      newcomers.lists(context, reviews, arguments.request.top, /*reasons=*/!to_file);
  tell_of(made, domain);
  if (to_file) {
    AtomicFile file(arguments.out);
    file.write(kListsHeader);
    for (const Recommendation& list : made.users) append(file, list);
    file.commit();
  } else if (arguments.json) {
    print_json(to_json(made, domain));
  } else {
    for (const Recommendation& list : made.users) {
      if (&list != made.users.data()) fmt::print("\n");
      show(arguments, list);
    }
  }
}

void check(const Arguments& arguments) {
  if (int{!arguments.user.empty()} + arguments.all + !arguments.reviews.empty() != 1) {
    throw Error(
        "give --user ID, or --all and --out FILE for everybody's lists, or --reviews FILE for "
        "people who were not in the data");
  }
  if (arguments.all && arguments.out.empty()) throw Error("--all needs --out FILE");
  if (!arguments.user.empty() && !arguments.out.empty()) {
    throw Error("--user prints one list; --out goes with --all or --reviews");
  }
  if (arguments.reviews.empty() && !(arguments.columns.empty() && arguments.encoder.empty())) {
    throw Error("--columns and --model go with --reviews");
  }
  if (!arguments.out.empty()) check_output(arguments.out, kListsHeader, arguments.force);
}

void run(const Arguments& arguments) {
  check(arguments);
  const auto context = arguments.device.make_context();
  const auto model = open_model(*context, arguments.run, arguments.data);
  if (arguments.all) {
    write_all(arguments, *context, *model);
  } else if (!arguments.user.empty()) {
    recommend_user(arguments, *context, *model);
  } else {
    recommend_newcomers(arguments, *context, *model);
  }
}

}  // namespace

void add_recommend(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("recommend", "a user's list, everybody's, or a newcomer's");
  command->add_option("run", arguments->run, "what train or 'baseline --out' wrote")->required();
  command->add_option("--user", arguments->user, "the raw id of a user");
  command->add_option("--top", arguments->request.top, "length of a list")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--all", arguments->all, "everybody's lists, to --out");
  command->add_option("--reviews", arguments->reviews,
                      "lists for the writers of these reviews, who were not in the data; files as "
                      "prepare reads them");
  command->add_option("--columns", arguments->columns,
                      "of --reviews, where its columns are not called as the data's were: "
                      "user=..,item=..,rating=..,text=..,time=..");
  command->add_option("--model", arguments->encoder,
                      "of --reviews, in a run that reads vectors of reviews: the folder of the "
                      "encoder that made them");
  command->add_option("--out", arguments->out, "a TSV file: user, rank, item, score; '-': stdout");
  command->add_option("--domain", arguments->request.domain, "whose items")
      ->check(CLI::IsMember({"target", "source"}))
      ->capture_default_str();
  command->add_option("--data", arguments->data, "where the run's data is now");
  command->add_flag("--force", arguments->force, "replace an --out that recommend did not write");
  command->add_flag("--json", arguments->json, "lists as JSON");
  arguments->device.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
