#include "host/run/newcomers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/stopwatch.h"
#include "host/data/held_out_users.h"
#include "host/data/item_titles.h"
#include "host/data/prepare.h"
#include "host/data/readers/read_reviews.h"
#include "host/device/make_context.h"
#include "host/eval/user_items.h"
#include "host/run/review_words.h"
#include "host/run/run.h"
#include "host/train/residual/residual.h"

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

  // Not to be recommended.
  UserItems known_items() const {
    std::vector<std::pair<int32_t, int32_t>> known;
    for (const Row& row : rows) {
      if (row.item >= 0) known.emplace_back(row.user, static_cast<int32_t>(row.item));
    }
    return make_user_items(std::ssize(users), std::move(known));
  }
};

// Newcomers as the model has them.
struct PlacedPeople {
  std::optional<SignalModel::Placed> signals;  // where there are any
  DomainEmbeddings embeddings;                 // where they count: of newcomers and of all items
  int64_t of_unknown_words = 0;  // reviews with text, but without a word of the vocabulary
};

}  // namespace

std::vector<NewReview> read_new_reviews(const std::vector<std::string>& paths,
                                        const RankingModel& model, const std::string& domain,
                                        const std::string& columns, ThreadPool& pool) {
  const Domain& of = model.domain(domain_index(domain));
  const PrepareOptions options = read_prepare_options(of.path.parent_path());
  ReadRequest request;
  request.paths = paths;
  request.columns = columns.empty() ? columns_of(options, domain) : parse_columns(columns);
  request.tolerated = options.skip_bad;
  ReadReport report;
  const Interactions read = read_reviews(request, options, pool, report);
  for (const BadLine& line : report.bad) {
    log_warning(fmt::format("{}:{}: {}; left out", line.file, line.line, line.reason));
  }
  std::vector<NewReview> reviews;
  reviews.reserve(read.rows.size());
  for (const Interaction& row : read.rows) {
    reviews.push_back({std::string(read.users[row.user]), std::string(read.items[row.item]),
                       std::string(row.review()), row.rating});
  }
  return reviews;
}

std::shared_ptr<ReviewReader> open_review_reader(Context& context, const RankingModel& model,
                                                 const std::string& folder) {
  if (!model.reads_review_vectors()) return nullptr;
  if (folder.empty()) {
    throw Error(
        fmt::format("{}: reads vectors of reviews; say with --model where the encoder is that made "
                    "those of its data",
                    model.directory().name()));
  }
  return make_review_reader(context, folder, model.domain(kTarget));
}

struct Newcomers::State {
  State(Context& context, RankingModel& of, const std::string& name,
        std::shared_ptr<ReviewReader> by)
      : model(of),
        which(domain_index(name)),
        domain(of.domain(which)),
        prepared(read_prepare_options(domain.path.parent_path())),
        signals(of.signals(which)),
        words(domain),
        titles(domain),
        reader(of.reads_review_vectors() ? std::move(by) : nullptr),
        share(signals == nullptr ? 1 : of.residual_share()) {
    if (signals != nullptr) terms.emplace(signals->data().terms());
    if (share == 0) return;
    // Says why where it cannot.
    model.embed_later(context, which, kUser, std::vector<LaterEntity>(1));
    if (model.reads_review_vectors() && reader == nullptr) {
      throw Error(
          fmt::format("{}: reads vectors of reviews, and there is no encoder for those of "
                      "newcomers: give --model",
                      model.directory().name()));
    }
    items = model.embed(which);
    items.z[kUser].clear();
    items.ranking[kUser].clear();
    arrays = model.scorer();
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

  PlacedPeople place(Context& context, const Rows& read) const {
    PlacedPeople placed;
    if (signals != nullptr) place_by_signals(context, read, placed);
    if (share != 0) embed(context, read, placed);
    return placed;
  }

  void place_by_signals(Context& context, const Rows& read, PlacedPeople& placed) const {
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
    const ReviewTerms found = terms->read(texts);
    for (std::size_t r = 0; r < texts.size(); ++r) {
      const auto review = static_cast<int64_t>(r);
      placed.of_unknown_words += !texts[r].empty() && found.of(review).empty();
    }
    placed.signals = signals->place(context, join_rows(domain.items.size(), liked), found, author);
  }

  // What the towers make of histories and texts, no row of the id table being theirs.
  void embed(Context& context, const Rows& read, PlacedPeople& placed) const {
    std::vector<LaterEntity> entities(read.users.size());
    std::vector<std::string_view> texts;
    std::vector<int32_t> author;
    for (const Row& row : read.rows) {
      if (!row.counts) continue;
      if (row.item >= 0) {
        entities[static_cast<std::size_t>(row.user)].history.push_back(
            {static_cast<int32_t>(row.item), row.liked});
      }
      texts.push_back(row.review->text);
      author.push_back(row.user);
    }
    if (reader != nullptr) {
      const TextSums sums = reader->read(texts);
      const auto width = static_cast<std::size_t>(sums.width);
      for (LaterEntity& entity : entities) entity.review.assign(width, 0.0f);
      for (std::size_t r = 0; r < texts.size(); ++r) {
        LaterEntity& entity = entities[static_cast<std::size_t>(author[r])];
        entity.sentences += sums.count[r];
        for (std::size_t c = 0; c < width; ++c) entity.review[c] += sums.sum[r * width + c];
      }
    }
    placed.embeddings = items;
    const std::lock_guard one_at_a_time(embedding);
    DomainEmbeddings own = model.embed_later(context, which, kUser, entities);
    placed.embeddings.count[kUser] = own.count[kUser];
    placed.embeddings.z[kUser] = std::move(own.z[kUser]);
    placed.embeddings.ranking[kUser] = std::move(own.ranking[kUser]);
  }

  // Valid as long as `placed`.
  std::unique_ptr<Scorer> scorer(Context& context, const PlacedPeople& placed) const {
    if (share == 0) return signals->scorer(*placed.signals);
    if (signals == nullptr) return make_scorer(context, placed.embeddings, arrays);
    const SignalScores& scores = signals->scores();
    const SignalScores::Users& users = placed.signals->scored;
    return make_residual_scorer(
        context,
        [&scores, &users](Context& where, std::span<const int32_t> rows, int64_t first,
                          int64_t last, MatrixView<float> block) {
          scores.fill(where, users, rows, first, last, block);
        },
        [&scores, &users](int32_t user, std::span<const int32_t> chosen, double* values) {
          scores.score(users, user, chosen, values);
        },
        placed.embeddings, arrays, share);
  }

  // What the residual adds to each of the `chosen` items' scores, less its mean over all items.
  std::vector<double> raised_by_model(const PlacedPeople& placed, const Scorer& scorer,
                                      int32_t user, std::span<const int32_t> chosen) const {
    std::vector<int32_t> all(static_cast<std::size_t>(domain.items.size()));
    std::iota(all.begin(), all.end(), 0);
    std::vector<double> both(all.size()), alone(all.size());
    scorer.score(user, all, both.data());
    signals->scores().score(placed.signals->scored, user, all, alone.data());
    double mean = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      mean += (both[i] - alone[i]) / static_cast<double>(all.size());
    }
    std::vector<double> raised;
    for (const int32_t item : chosen) {
      const auto at = static_cast<std::size_t>(item);
      raised.push_back(both[at] - alone[at] - mean);
    }
    return raised;
  }

  void add_reasons(const PlacedPeople& placed, const Scorer& scorer, const Rows& read, int32_t user,
                   std::span<const int32_t> chosen, Recommendation& list) const {
    std::vector<SignalReason> reasons;
    std::vector<double> raised;
    if (signals != nullptr) reasons = signals->reasons(*placed.signals, user, chosen);
    if (signals != nullptr && share != 0) raised = raised_by_model(placed, scorer, user, chosen);
    const UserItems known = read.known_items();
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      RecommendedItem& recommended = list.items[i];
      recommended.title = std::string(titles[chosen[i]]);
      recommended.words = words.of_item(chosen[i]);
      std::vector<int32_t> own;
      const bool of_model = share != 0 && (signals == nullptr || raised[i] > reasons[i].raised);
      if (of_model) {
        own = nearest_known(items, known.of(user), chosen[i]);
      } else {
        recommended.because = std::move(reasons[i].words);
        own = std::move(reasons[i].items);
      }
      if (signals != nullptr) {
        recommended.signal = of_model ? "model" : name_of(reasons[i].signal);
      }
      for (const int32_t item : own) {
        recommended.because.emplace_back(domain.items[item]);
        for (const Row& row : read.of(user)) {
          if (row.item == item) {
            recommended.own_words.push_back(first_sentence(row.review->text));
          }
        }
      }
    }
  }

  RankingModel& model;
  std::size_t which;
  const Domain& domain;
  PrepareOptions prepared;
  const SignalModel* signals;
  ReviewWords words;
  ItemTitles titles;
  std::optional<KnownTerms> terms;
  std::shared_ptr<ReviewReader> reader;
  double share;            // of the embeddings' score in the sum; 0: they do not count
  DomainEmbeddings items;  // no user's
  ScorerArrays arrays;
  mutable std::mutex embedding;
};

Newcomers::Newcomers(Context& context, RankingModel& model, const std::string& domain,
                     std::shared_ptr<ReviewReader> reader)
    : state_(std::make_unique<State>(context, model, domain, std::move(reader))) {}
Newcomers::~Newcomers() = default;

NewUserLists Newcomers::lists(Context& context, std::span<const NewReview> reviews, int64_t top,
                              bool reasons) const {
  const State& state = *state_;
  const Rows read = state.read(reviews);
  NewUserLists result;
  result.reviews = std::ssize(reviews);
  for (const Row& row : read.rows) {
    if (row.item < 0) result.unknown_items.push_back(row.review->item);
  }
  for (const NewReview& review : reviews) {
    result.of_unknown_items += state.domain.items.find(review.item) < 0;
    result.without_text += review.text.empty();
  }
  std::sort(result.unknown_items.begin(), result.unknown_items.end());
  result.unknown_items.erase(std::unique(result.unknown_items.begin(), result.unknown_items.end()),
                             result.unknown_items.end());

  const UserItems masked = read.known_items();
  const PlacedPeople placed = state.place(context, read);
  result.of_unknown_words = placed.of_unknown_words;
  std::vector<int32_t> users(read.users.size());
  std::iota(users.begin(), users.end(), 0);
  RankingOptions options;
  options.k = std::min(top, state.domain.items.size());
  const std::unique_ptr<Scorer> scorer = state.scorer(context, placed);
  const Lists ranked = scorer->rank(context, users, masked, options);
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
      state.add_reasons(placed, *scorer, read, users[u], ranked.of(u).first(list.items.size()),
                        list);
    }
    result.users.push_back(std::move(list));
  }
  return result;
}

EvaluationReport Newcomers::evaluate(Context& context, std::span<const NewReview> reviews,
                                     const Asked& asked, const EvaluationConfig& eval) const {
  const Stopwatch watch;
  const State& state = *state_;
  const Rows read = state.read(reviews);
  const auto users = std::ssize(read.users);
  std::map<std::string_view, int32_t> number;
  for (std::size_t u = 0; u < read.users.size(); ++u) {
    number.emplace(read.users[u], static_cast<int32_t>(u));
  }
  std::vector<std::pair<int32_t, int32_t>> positives;
  for (const auto& [user, item] : asked) {
    const auto found = number.find(user);
    const int64_t row = state.domain.items.find(item);
    if (found == number.end() || row < 0) continue;
    positives.emplace_back(found->second, static_cast<int32_t>(row));
  }
  if (positives.empty()) {
    throw Error(fmt::format("{}: nothing is asked of those who were held out that the data have",
                            state.domain.path.parent_path().string()));
  }
  EvaluationReport report;
  report.request.domain = state.domain.name;
  report.request.eval = eval;
  report.newcomers = true;
  report.held_out = make_held_out(state.domain, Split::test, Mask::none);  // for its cold items
  report.held_out.masked = read.known_items();
  report.held_out.positives = make_user_items(users, std::move(positives));
  report.held_out.cold_user.assign(read.users.size(), 1);
  for (const Row& row : read.rows) {
    if (row.liked && row.item >= 0)
      report.held_out.cold_user[static_cast<std::size_t>(row.user)] = 0;
  }
  const PlacedPeople placed = state.place(context, read);
  report.evaluation =
      cfaa::evaluate(context, *state.scorer(context, placed), report.held_out, eval.options());
  report.device = device_label(context);
  report.evaluate_seconds = watch.seconds();
  return report;
}

NewcomersReport evaluate_newcomers(Context& context, RankingModel& model,
                                   const EvaluationConfig& eval,
                                   std::shared_ptr<ReviewReader> reader) {
  const Domain& target = model.domain(kTarget);
  const std::filesystem::path data = target.path.parent_path();
  const Newcomers::Asked asked = read_asked_items(data);
  // Written by prepare: its names, whatever the columns of the input were called.
  const std::vector<NewReview> reviews =
      read_new_reviews({held_out_reviews_path(data).string()}, model, target.name,
                       "user=user,item=item,rating=rating,text=text", context.threads());
  NewcomersReport result;
  result.people.name = target.name;
  result.people.items = target.items;
  for (const NewReview& review : reviews) {
    IdList& users = result.people.users;
    if (users.size() == 0 || users[users.size() - 1] != review.user) users.append(review.user);
  }
  std::string_view last;
  for (const auto& [user, item] : asked) {
    const bool silent = result.people.users.find(user) < 0;
    result.without_reviews += silent && user != last;
    result.of_unknown_items += !silent && target.items.find(item) < 0;
    last = user;
  }
  result.report = Newcomers(context, model, target.name, std::move(reader))
                      .evaluate(context, reviews, asked, eval);
  return result;
}

}  // namespace cfaa
