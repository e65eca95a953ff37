#include "host/run/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/core/error.h"
#include "host/core/options.h"
#include "host/data/item_titles.h"
#include "host/eval/held_out.h"
#include "host/run/review_words.h"
#include "host/run/run.h"

namespace cfaa {
namespace {

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

int32_t user_row(const RankingModel& model, std::size_t which, const std::string& user) {
  const Domain& domain = model.domain(which);
  const int64_t found = domain.users.find(user);
  if (found >= 0) return static_cast<int32_t>(found);
  for (const std::size_t other : model.domains()) {
    const Domain& its = model.domain(other);
    if (its.users.find(user) < 0) continue;
    throw Error(fmt::format("--user {}: is a user of the {} domain; give --domain {}", user,
                            its.name, its.name));
  }
  throw Error(fmt::format("--user {}: is not a user of the {} domain; {}", user, domain.name,
                          close_ids(domain.users, user)));
}

double cosine(const DomainEmbeddings& embeddings, int32_t a, int32_t b) {
  const auto dim = static_cast<std::size_t>(embeddings.dim);
  const float* x = embeddings.z[kItem].data() + static_cast<std::size_t>(a) * dim;
  const float* y = embeddings.z[kItem].data() + static_cast<std::size_t>(b) * dim;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t c = 0; c < dim; ++c) {
    xy += static_cast<double>(x[c]) * y[c];
    xx += static_cast<double>(x[c]) * x[c];
    yy += static_cast<double>(y[c]) * y[c];
  }
  return xy / std::sqrt(std::max(xx * yy, 1e-300));
}

}  // namespace

std::vector<int32_t> nearest_known(const DomainEmbeddings& embeddings,
                                   std::span<const int32_t> known, int32_t item) {
  std::vector<std::pair<double, int32_t>> order;
  for (const int32_t other : known) order.emplace_back(-cosine(embeddings, item, other), other);
  std::sort(order.begin(), order.end());
  std::vector<int32_t> nearest;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, order.size()); ++i) {
    nearest.push_back(order[i].second);
  }
  return nearest;
}

struct Recommender::State {
  State(RankingModel& of, const std::string& name)
      : model(of),
        which(domain_index(name)),
        domain(of.domain(which)),
        signals(of.signals(which)),
        scorer(of.ranking(which)),
        held_out(make_held_out(domain, Split::test, Mask::train_valid)),
        titles(domain),
        words(domain),
        has_model(signals == nullptr || of.residual_share() > 0) {
    if (has_model) embeddings = of.embed(which);
  }

  Lists lists(Context& context, std::span<const int32_t> users, int64_t top) const {
    RankingOptions options;
    options.k = std::min(top, domain.items.size());
    return scorer.rank(context, users, held_out.masked, options);
  }

  // Row `row` of `lists`.
  Recommendation recommendation(const Lists& lists, std::size_t row) const {
    const int32_t user = lists.user[row];
    Recommendation list{
        std::string(domain.users[user]), static_cast<int64_t>(held_out.masked.of(user).size()), {}};
    for (const int32_t item : lists.of(row)) {
      if (item < 0) break;
      const std::size_t at = row * static_cast<std::size_t>(lists.k) + list.items.size();
      list.items.push_back({std::string(domain.items[item]),
                            std::string(titles[item]),
                            lists.score[at],
                            "",
                            "",
                            {},
                            {}});
    }
    return list;
  }

  // `list` is that of the one user of `lists`.
  void add_reasons(const Lists& lists, Recommendation& list) const {
    const int32_t user = lists.user[0];
    const std::span<const int32_t> items = lists.of(0).first(list.items.size());
    std::vector<SignalReason> reasons;
    std::vector<double> raised;
    if (signals != nullptr) {
      reasons = signals->reasons(user, items);
      if (has_model) raised = raised_by_model(user, items);
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      RecommendedItem& recommended = list.items[i];
      recommended.words = words.of_item(items[i]);
      std::vector<int32_t> own;
      bool of_model = has_model;
      if (signals != nullptr) {
        of_model = has_model && raised[i] > reasons[i].raised;
        recommended.signal = of_model ? "model" : name_of(reasons[i].signal);
        if (!of_model) {
          recommended.because = std::move(reasons[i].words);
          own = std::move(reasons[i].items);
        }
      }
      if (of_model && embeddings.dim > 0) {
        own = nearest_known(embeddings, held_out.masked.of(user), items[i]);
      }
      for (const int32_t item : own) {
        recommended.because.emplace_back(domain.items[item]);
        recommended.own_words.push_back(words.of(user, item));
      }
    }
  }

  // What the residual adds to each item's score, less its mean over all items.
  std::vector<double> raised_by_model(int32_t user, std::span<const int32_t> chosen) const {
    std::vector<int32_t> items(static_cast<std::size_t>(domain.items.size()));
    std::iota(items.begin(), items.end(), 0);
    std::vector<double> both(items.size()), alone(items.size());
    scorer.score(user, items, both.data());
    signals->scores().score(user, items, alone.data());
    double mean = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      mean += (both[i] - alone[i]) / static_cast<double>(items.size());
    }
    std::vector<double> raised;
    for (const int32_t item : chosen) {
      const auto at = static_cast<std::size_t>(item);
      raised.push_back(both[at] - alone[at] - mean);
    }
    return raised;
  }

  RankingModel& model;
  std::size_t which;
  const Domain& domain;
  const SignalModel* signals;  // null in a run of CFAA
  const Scorer& scorer;
  HeldOut held_out;
  ItemTitles titles;
  ReviewWords words;
  bool has_model;               // whether embeddings take part in the score
  DomainEmbeddings embeddings;  // of that model
};

Recommender::Recommender(RankingModel& model, const std::string& domain)
    : state_(std::make_unique<State>(model, domain)) {}
Recommender::~Recommender() = default;

const Domain& Recommender::domain() const {
  return state_->domain;
}

std::string_view Recommender::title(int32_t item) const {
  return state_->titles[item];
}

std::string Recommender::words(int32_t user, int32_t item) const {
  return state_->words.of(user, item);
}

Recommendation Recommender::recommend(Context& context, int32_t user, int64_t top,
                                      bool reasons) const {
  const Lists lists = state_->lists(context, {&user, 1}, top);
  Recommendation list = state_->recommendation(lists, 0);
  if (reasons) state_->add_reasons(lists, list);
  return list;
}

void Recommender::recommend_all(Context& context, int64_t top,
                                const std::function<void(const Recommendation&)>& take) const {
  std::vector<int32_t> users(static_cast<std::size_t>(state_->domain.users.size()));
  std::iota(users.begin(), users.end(), 0);
  const Lists lists = state_->lists(context, users, top);
  for (std::size_t row = 0; row < users.size(); ++row) take(state_->recommendation(lists, row));
}

bool Recommender::has_similar() const {
  return state_->signals != nullptr || state_->embeddings.dim > 0;
}

std::vector<SimilarItem> Recommender::similar(int32_t item, int64_t top) const {
  CFAA_ASSERT(has_similar());
  std::vector<std::pair<double, int32_t>> order;  // by less the score, then the item
  if (state_->signals != nullptr) {
    const SparseRows& votes = state_->signals->scores().right();
    const auto others = votes.columns_of(item);
    const auto values = votes.values_of(item);
    for (std::size_t e = 0; e < others.size(); ++e) {
      if (others[e] != item && values[e] > 0) order.emplace_back(-double{values[e]}, others[e]);
    }
  } else {
    for (int32_t other = 0; other < state_->domain.items.size(); ++other) {
      if (other != item) order.emplace_back(-cosine(state_->embeddings, item, other), other);
    }
  }
  const auto count = std::min<std::size_t>(order.size(), static_cast<std::size_t>(top));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
  std::vector<SimilarItem> similar;
  for (std::size_t i = 0; i < count; ++i) {
    const int32_t other = order[i].second;
    similar.push_back({std::string(state_->domain.items[other]), std::string(state_->titles[other]),
                       -order[i].first});
  }
  return similar;
}

Recommendation recommend(Context& context, RankingModel& model, const std::string& user,
                         const RecommendRequest& request) {
  // Before all that a list needs is made.
  const int32_t row = user_row(model, domain_index(request.domain), user);
  return Recommender(model, request.domain).recommend(context, row, request.top);
}

void recommend_all(Context& context, RankingModel& model, const RecommendRequest& request,
                   const std::function<void(const Recommendation&)>& take) {
  Recommender(model, request.domain).recommend_all(context, request.top, take);
}

}  // namespace cfaa
