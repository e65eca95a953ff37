// cfaa_gpu recommend run/ --user ID: the lists people came for.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "host/core/error.h"
#include "host/eval/held_out.h"
#include "host/io/atomic_file.h"
#include "host/run/run.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

using nlohmann::json;

struct Arguments {
  std::string run, data, user, out, domain = "target";
  int64_t top = 10;
  bool all = false, json = false;
  DeviceFlags device;
};

// Ids that look like the one asked for: the same beginning, then the nearest by edits.
std::string close_ids(const IdList& ids, const std::string& user) {
  std::vector<std::string> some;
  for (int64_t i = 0; i < ids.size() && some.size() < 2000; ++i) {
    const std::string_view id = ids[i];
    const std::size_t shared = std::min<std::size_t>({user.size(), id.size(), 4});
    if (id.substr(0, shared) == std::string_view(user).substr(0, shared)) some.emplace_back(id);
  }
  const std::string near = nearest_name(user, some);
  if (!near.empty()) return fmt::format("did you mean '{}'?", near);
  if (ids.size() == 0) return "there are no users";
  return fmt::format("users.tsv lists {}, the first of which is '{}'", ids.size(), ids[0]);
}

// Of the items the user knows, those whose embeddings are nearest to a recommended one.
std::vector<int32_t> reasons(const DomainEmbeddings& embeddings, std::span<const int32_t> known,
                             int32_t item) {
  const auto dim = static_cast<std::size_t>(embeddings.dim);
  const auto row = [&](int32_t i) {
    return embeddings.z[kItem].data() + static_cast<std::size_t>(i) * dim;
  };
  const auto cosine = [&](int32_t a, int32_t b) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t c = 0; c < dim; ++c) {
      ab += static_cast<double>(row(a)[c]) * row(b)[c];
      aa += static_cast<double>(row(a)[c]) * row(a)[c];
      bb += static_cast<double>(row(b)[c]) * row(b)[c];
    }
    return ab / std::sqrt(std::max(aa * bb, 1e-300));
  };
  std::vector<std::pair<double, int32_t>> order;
  for (const int32_t other : known) order.emplace_back(-cosine(item, other), other);
  std::sort(order.begin(), order.end());
  std::vector<int32_t> nearest;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, order.size()); ++i) {
    nearest.push_back(order[i].second);
  }
  return nearest;
}

void show(const Arguments& arguments, const Domain& domain, const DomainEmbeddings& embeddings,
          const UserItems& known, const Lists& lists) {
  const int32_t user = lists.user[0];
  json fields = {{"user", arguments.user}, {"domain", arguments.domain}, {"items", json::array()}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(lists.k); ++i) {
    if (lists.item[i] < 0) break;
    json because = json::array();
    for (const int32_t item : reasons(embeddings, known.of(user), lists.item[i])) {
      because.push_back(std::string(domain.items[item]));
    }
    fields["items"].push_back({{"rank", i + 1},
                               {"item", std::string(domain.items[lists.item[i]])},
                               {"score", lists.score[i]},
                               {"because", because}});
  }
  if (arguments.json) {
    print_json(fields);
    return;
  }
  fmt::print("for '{}' ({} interactions known), {} domain:\n\n", arguments.user,
             known.of(user).size(), arguments.domain);
  fmt::print("{:>4}  {:<24} {:>9}  nearest of the user's own\n", "", "item", "score");
  for (const json& item : fields["items"]) {
    fmt::print("{:>4}  {:<24} {:>9.4f}  {}\n", item["rank"].get<int>(),
               item["item"].get<std::string>(), item["score"].get<double>(),
               fmt::join(item["because"].get<std::vector<std::string>>(), ", "));
  }
}

void write_all(const Arguments& arguments, const Domain& domain, const Lists& lists) {
  AtomicFile file(arguments.out);
  file.write("user_id\trank\titem_id\tscore\n");
  const auto k = static_cast<std::size_t>(lists.k);
  for (std::size_t row = 0; row < lists.user.size(); ++row) {
    for (std::size_t i = 0; i < k && lists.item[row * k + i] >= 0; ++i) {
      file.write(fmt::format("{}\t{}\t{}\t{}\n", domain.users[lists.user[row]], i + 1,
                             domain.items[lists.item[row * k + i]], lists.score[row * k + i]));
    }
  }
  file.commit();
}

void run(const Arguments& arguments) {
  if (arguments.all ? arguments.out.empty() : arguments.user.empty()) {
    throw Error("give --user ID, or --all and --out FILE for everybody's lists");
  }
  const auto context = arguments.device.make_context();
  Run trained(*context, arguments.run, arguments.data);
  const std::size_t which = arguments.domain == "source" ? kSource : kTarget;
  const Domain& domain = trained.domain(which);
  std::vector<int32_t> users(static_cast<std::size_t>(domain.users.size()));
  std::iota(users.begin(), users.end(), 0);
  if (!arguments.all) {
    const int64_t user = domain.users.find(arguments.user);
    if (user < 0) {
      throw Error(fmt::format("--user {}: is not a user of the {} domain; {}", arguments.user,
                              arguments.domain, close_ids(domain.users, arguments.user)));
    }
    users = {static_cast<int32_t>(user)};
  }
  const DomainEmbeddings embeddings = trained.embed(which);
  const auto scorer = make_scorer(*context, embeddings, trained.scorer());
  const HeldOut held_out = make_held_out(domain, Split::test, Mask::train_valid);
  RankingOptions options;
  options.k = std::min(arguments.top, domain.items.size());
  const Lists lists = scorer->rank(*context, users, held_out.masked, options);
  if (arguments.all) {
    write_all(arguments, domain, lists);
  } else {
    show(arguments, domain, embeddings, held_out.masked, lists);
  }
}

}  // namespace

void add_recommend(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("recommend", "a user's list, or everybody's");
  command->add_option("run", arguments->run, "the directory that train wrote")->required();
  command->add_option("--user", arguments->user, "the raw id of a user");
  command->add_option("--top", arguments->top, "length of a list")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--all", arguments->all, "everybody's lists, to --out");
  command->add_option("--out", arguments->out, "a TSV file: user, rank, item, score");
  command->add_option("--domain", arguments->domain, "whose items")
      ->check(CLI::IsMember({"target", "source"}))
      ->capture_default_str();
  command->add_option("--data", arguments->data, "where the run's data is now");
  command->add_flag("--json", arguments->json, "the list as JSON");
  arguments->device.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
