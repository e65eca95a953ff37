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

// A domain's items, ranked.
class Ranking {
 public:
  Ranking(Context& context, RankingModel& model, const RecommendRequest& request)
      : context_(context),
        which_(domain_index(request.domain)),
        domain_(model.domain(which_)),
        signals_(model.signals(which_)),
        scorer_(model.ranking(which_)),
        held_out_(make_held_out(domain_, Split::test, Mask::train_valid)) {
    options_.k = std::min(request.top, domain_.items.size());
    has_model_ = signals_ == nullptr || model.residual_share() > 0;
    if (has_model_) embeddings_ = model.embed(which_);
  }

  Lists lists(std::span<const int32_t> users) const {
    return scorer_.rank(context_, users, held_out_.masked, options_);
  }

  // Row `row` of `lists`.
  Recommendation recommendation(const Lists& lists, std::size_t row) const {
    const int32_t user = lists.user[row];
    Recommendation list{std::string(domain_.users[user]),
                        static_cast<int64_t>(held_out_.masked.of(user).size()),
                        {}};
    const auto k = static_cast<std::size_t>(lists.k);
    for (std::size_t i = row * k; i < (row + 1) * k && lists.item[i] >= 0; ++i) {
      list.items.push_back(
          {std::string(domain_.items[lists.item[i]]), "", lists.score[i], "", "", {}, {}});
    }
    return list;
  }

  void add_reasons(const Lists& lists, Recommendation& list) const {
    const ReviewWords words(domain_);
    const ItemTitles titles(domain_);
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      RecommendedItem& recommended = list.items[i];
      recommended.title = std::string(titles[lists.item[i]]);
      recommended.words = words.of_item(lists.item[i]);
      std::vector<int32_t> own;
      bool of_model = has_model_;
      if (signals_ != nullptr) {
        SignalReason reason = signals_->reason(lists.user[0], lists.item[i]);
        of_model = has_model_ && raised_by_model(lists.user[0], lists.item[i]) > reason.raised;
        recommended.signal = of_model ? "model" : name_of(reason.signal);
        if (!of_model) {
          recommended.because = std::move(reason.words);
          own = std::move(reason.items);
        }
      }
      if (of_model && embeddings_.dim > 0) {
        own = reasons(embeddings_, held_out_.masked.of(lists.user[0]), lists.item[i]);
      }
      for (const int32_t item : own) {
        recommended.because.emplace_back(domain_.items[item]);
        recommended.own_words.push_back(words.of(lists.user[0], item));
      }
    }
  }

 private:
  // What the residual adds to an item's score, less its mean over all items.
  double raised_by_model(int32_t user, int32_t item) const {
    std::vector<int32_t> items(static_cast<std::size_t>(domain_.items.size()));
    std::iota(items.begin(), items.end(), 0);
    std::vector<double> both(items.size()), alone(items.size());
    scorer_.score(user, items, both.data());
    signals_->scores().score(user, items, alone.data());
    double mean = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      mean += (both[i] - alone[i]) / static_cast<double>(items.size());
    }
    const auto at = static_cast<std::size_t>(item);
    return both[at] - alone[at] - mean;
  }

  Context& context_;
  std::size_t which_;
  const Domain& domain_;
  const SignalModel* signals_;   // null in a run of CFAA
  bool has_model_ = false;       // whether embeddings take part in the score
  DomainEmbeddings embeddings_;  // of that model
  const Scorer& scorer_;
  HeldOut held_out_;
  RankingOptions options_;
};

}  // namespace

Recommendation recommend(Context& context, RankingModel& model, const std::string& user,
                         const RecommendRequest& request) {
  const std::size_t which = domain_index(request.domain);
  const IdList& users = model.domain(which).users;
  const int64_t found = users.find(user);
  if (found < 0) {
    for (const std::size_t other : model.domains()) {
      const Domain& domain = model.domain(other);
      if (domain.users.find(user) < 0) continue;
      throw Error(fmt::format("--user {}: is a user of the {} domain; give --domain {}", user,
                              domain.name, domain.name));
    }
    throw Error(fmt::format("--user {}: is not a user of the {} domain; {}", user, request.domain,
                            close_ids(users, user)));
  }
  const Ranking ranking(context, model, request);
  const auto index = static_cast<int32_t>(found);
  const Lists lists = ranking.lists({&index, 1});
  Recommendation list = ranking.recommendation(lists, 0);
  ranking.add_reasons(lists, list);
  return list;
}

void recommend_all(Context& context, RankingModel& model, const RecommendRequest& request,
                   const std::function<void(const Recommendation&)>& take) {
  std::vector<int32_t> users(
      static_cast<std::size_t>(model.domain(domain_index(request.domain)).users.size()));
  std::iota(users.begin(), users.end(), 0);
  const Ranking ranking(context, model, request);
  const Lists lists = ranking.lists(users);
  for (std::size_t row = 0; row < lists.user.size(); ++row) {
    take(ranking.recommendation(lists, row));
  }
}

}  // namespace cfaa
