#include "host/run/newcomers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "host/core/error.h"
#include "host/data/item_titles.h"
#include "host/data/prepare.h"
#include "host/eval/user_items.h"
#include "host/run/review_words.h"
#include "host/run/run.h"

namespace cfaa {
namespace {

// A review of a newcomer, by numbers.
struct Row {
  int32_t user;  // among the newcomers
  int64_t item;  // of the domain; -1: unknown
  bool liked;
  bool counts;  // its text and its item, liked or not; otherwise the item is only left out
  const NewReview* review;
};

// Reviews sorted by user and item as a training split is; unknown items by their names.
struct Rows {
  std::vector<std::string> users;
  std::vector<Row> rows;

  std::span<const Row> of(int32_t user) const {
    const auto [first, last] =
        std::equal_range(rows.begin(), rows.end(), Row{user, 0, false, false, nullptr},
                         [](const Row& a, const Row& b) { return a.user < b.user; });
    return {first, last};
  }
};

}  // namespace

struct Newcomers::State {
  State(RankingModel& model, const std::string& name)
      : which(domain_index(name)),
        domain(model.domain(which)),
        prepared(read_prepare_options(domain.path.parent_path())),
        signals(model.signals(which)),
        words(domain),
        titles(domain) {
    if (signals == nullptr || model.residual_share() > 0) {
      throw Error(
          fmt::format("{}: newcomers are placed by a run of signals (train without a "
                      "configuration)",
                      model.directory().name()));
    }
    terms.emplace(signals->data().terms());
  }

  Rows read(std::span<const NewReview> reviews) const {
    const bool keeps_negatives =
        which == kSource || prepared.target_negatives == TargetNegatives::keep;
    Rows read;
    std::map<std::string_view, int32_t> number;
    for (const NewReview& review : reviews) {
      const auto [at, fresh] = number.emplace(review.user, static_cast<int32_t>(number.size()));
      if (fresh) read.users.push_back(review.user);
      const bool liked = std::isnan(review.rating) ||
                         is_positive(static_cast<float>(review.rating), prepared.positive);
      read.rows.push_back(
          {at->second, domain.items.find(review.item), liked, liked || keeps_negatives, &review});
    }
    const auto same = [](const Row& a, const Row& b) {
      return a.user == b.user && a.item == b.item && a.review->item == b.review->item;
    };
    std::stable_sort(read.rows.begin(), read.rows.end(), [](const Row& a, const Row& b) {
      if (a.user != b.user) return a.user < b.user;
      if (a.item != b.item) return a.item < b.item;
      return a.review->item < b.review->item;
    });
    // Of equal ones the last.
    std::size_t kept = 0;
    for (const Row& row : read.rows) {
      if (kept > 0 && same(read.rows[kept - 1], row)) --kept;
      read.rows[kept++] = row;
    }
    read.rows.erase(read.rows.begin() + static_cast<std::ptrdiff_t>(kept), read.rows.end());
    return read;
  }

  SignalModel::Placed place(Context& context, const Rows& read) const {
    std::vector<std::vector<SparseEntry>> liked(read.users.size());
    std::vector<std::string_view> texts;
    std::vector<int32_t> author;
    for (const Row& row : read.rows) {
      if (!row.counts) continue;
      if (row.liked && row.item >= 0) {
        liked[static_cast<std::size_t>(row.user)].push_back({static_cast<int32_t>(row.item), 1.0f});
      }
      texts.push_back(row.review->text);
      author.push_back(row.user);
    }
    return signals->place(context, join_rows(domain.items.size(), liked), terms->read(texts),
                          author);
  }

  void add_reasons(const SignalModel::Placed& placed, const Rows& read, int32_t user,
                   std::span<const int32_t> items, Recommendation& list) const {
    const std::vector<SignalReason> reasons = signals->reasons(placed, user, items);
    for (std::size_t i = 0; i < items.size(); ++i) {
      RecommendedItem& recommended = list.items[i];
      recommended.title = std::string(titles[items[i]]);
      recommended.words = words.of_item(items[i]);
      recommended.signal = name_of(reasons[i].signal);
      recommended.because = reasons[i].words;
      for (const int32_t item : reasons[i].items) {
        recommended.because.emplace_back(domain.items[item]);
        for (const Row& row : read.of(user)) {
          if (row.item == item) recommended.own_words.push_back(first_sentence(row.review->text));
        }
      }
    }
  }

  std::size_t which;
  const Domain& domain;
  PrepareOptions prepared;
  const SignalModel* signals;
  ReviewWords words;
  ItemTitles titles;
  std::optional<KnownTerms> terms;
};

Newcomers::Newcomers(Context&, RankingModel& model, const std::string& domain)
    : state_(std::make_unique<State>(model, domain)) {}
Newcomers::~Newcomers() = default;

NewUserLists Newcomers::lists(Context& context, std::span<const NewReview> reviews, int64_t top,
                              bool reasons) const {
  const State& state = *state_;
  const Rows read = state.read(reviews);
  NewUserLists result;
  result.reviews = std::ssize(reviews);
  std::vector<std::pair<int32_t, int32_t>> own;
  for (const Row& row : read.rows) {
    if (row.item < 0) result.unknown_items.push_back(row.review->item);
    if (row.item >= 0) own.emplace_back(row.user, static_cast<int32_t>(row.item));
  }
  for (const NewReview& review : reviews) {
    result.of_unknown_items += state.domain.items.find(review.item) < 0;
    result.without_text += review.text.empty();
  }
  std::sort(result.unknown_items.begin(), result.unknown_items.end());
  result.unknown_items.erase(std::unique(result.unknown_items.begin(), result.unknown_items.end()),
                             result.unknown_items.end());

  const UserItems masked = make_user_items(std::ssize(read.users), std::move(own));
  const SignalModel::Placed placed = state.place(context, read);
  std::vector<int32_t> users(read.users.size());
  std::iota(users.begin(), users.end(), 0);
  RankingOptions options;
  options.k = std::min(top, state.domain.items.size());
  const Lists ranked = state.signals->scorer(placed)->rank(context, users, masked, options);
  for (std::size_t u = 0; u < users.size(); ++u) {
    Recommendation list{read.users[u], std::ssize(masked.of(users[u])), {}};
    const std::size_t first = u * static_cast<std::size_t>(ranked.k);
    for (const int32_t item : ranked.of(u)) {
      if (item < 0) break;
      list.items.push_back({std::string(state.domain.items[item]),
                            "",
                            ranked.score[first + list.items.size()],
                            "",
                            "",
                            {},
                            {}});
    }
    if (reasons) {
      state.add_reasons(placed, read, users[u], ranked.of(u).first(list.items.size()), list);
    }
    result.users.push_back(std::move(list));
  }
  return result;
}

}  // namespace cfaa
