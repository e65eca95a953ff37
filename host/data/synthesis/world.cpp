#include "host/data/synthesis/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "host/core/error.h"

namespace cfaa {
namespace {

constexpr int64_t kFewestReviews = 5;   // of a user, where there are enough for all
constexpr double kByTaste = 0.75;       // of a user's choices; the others follow popularity alone
constexpr double kAffinityScale = 5.5;  // stars per unit of <taste, content>

TopicMixture draw_mixture(Draws& draws, int topics, double least_first, double most_first) {
  TopicMixture mixture;
  mixture.first = static_cast<int>(draws.below(static_cast<uint64_t>(topics)));
  mixture.second = static_cast<int>(draws.below(static_cast<uint64_t>(topics)));
  const double first = least_first + (most_first - least_first) * draws.uniform();
  constexpr double kRest = 0.08;
  mixture.first_weight = static_cast<float>(first);
  mixture.second_weight = static_cast<float>(1 - kRest - first);
  mixture.rest = static_cast<float>(kRest / topics);
  return mixture;
}

}  // namespace

int TopicMixture::draw(Draws& draws, int topics) const {
  const double u = draws.uniform();
  if (u < first_weight) return first;
  if (u < first_weight + second_weight) return second;
  return static_cast<int>(draws.below(static_cast<uint64_t>(topics)));
}

int64_t SyntheticDomain::Shelf::draw(Draws& draws) const {
  const double at = draws.uniform() * cumulative.back();
  const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), at);
  const std::size_t i =
      std::min<std::size_t>(static_cast<std::size_t>(found - cumulative.begin()), items.size() - 1);
  return items[i];
}

SyntheticDomain::SyntheticDomain(const SynthesisOptions& options, bool target)
    : options_(options), target_(target), by_topic_(static_cast<std::size_t>(options.topics)) {
  const auto seed = static_cast<uint64_t>(options.seed);
  const int topics = static_cast<int>(options.topics);
  const auto put = [](Shelf& shelf, int64_t item, double weight) {
    shelf.items.push_back(static_cast<int32_t>(item));
    shelf.cumulative.push_back((shelf.cumulative.empty() ? 0 : shelf.cumulative.back()) + weight);
  };
  for (int64_t i = 0; i < options.items; ++i) {
    Draws draws(seed, target, Draws::Purpose::item, static_cast<uint64_t>(i));
    const TopicMixture content = draw_mixture(draws, topics, 0.6, 0.85);
    contents_.push_back(content);
    quality_.push_back(static_cast<float>(0.4 * draws.normal()));
    // A Pareto tail of popularity with exponent 1.25, capped: the long tail of real catalogues.
    const double popularity = std::min(1 / std::pow(1 - draws.uniform(), 0.8), 200.0);
    put(by_topic_[static_cast<std::size_t>(content.first)], i, popularity * content.first_weight);
    put(by_topic_[static_cast<std::size_t>(content.second)], i, popularity * content.second_weight);
    put(all_, i, popularity);
  }
  for (Shelf& shelf : by_topic_) {
    if (shelf.items.empty()) shelf = all_;  // a topic without items, in a tiny catalogue
  }
  std::vector<double> activity(1, 0.0);
  for (int64_t u = 0; u < options.users; ++u) {
    Draws draws(seed, target, Draws::Purpose::user, static_cast<uint64_t>(u));
    tastes_.push_back(draw_mixture(draws, topics, 0.6, 0.85));
    activity.push_back(activity.back() + std::min(1 / std::pow(1 - draws.uniform(), 0.6), 12.0));
  }
  // Everybody gets the same few, the rest goes by activity; rounding is cumulative, so that the
  // total is exact.
  const int64_t least = std::min(kFewestReviews, options.interactions / options.users);
  const double spare = static_cast<double>(options.interactions - least * options.users);
  for (int64_t u = 0; u <= options.users; ++u) {
    const double share = activity[static_cast<std::size_t>(u)] / activity.back();
    first_review_.push_back(least * u + static_cast<int64_t>(std::floor(spare * share)));
  }
  first_review_.back() = options.interactions;
  for (int64_t u = 0; u < options.users; ++u) {
    if (first_review_[u + 1] - first_review_[u] > options.items / 2) {
      throw Error(
          fmt::format("--interactions {}: a user would review more than half of the {} "
                      "items; give more --users or --items",
                      options.interactions, options.items));
    }
  }
}

int SyntheticDomain::stars_for(int64_t user, int64_t item, Draws& draws) const {
  const TopicMixture &taste = tastes_[user], &content = contents_[item];
  double affinity = 0;
  for (int t = 0; t < options_.topics; ++t) affinity += taste.weight(t) * content.weight(t);
  const double score = 2.1 + kAffinityScale * affinity + quality_[item] + 0.55 * draws.normal();
  return static_cast<int>(std::clamp(std::floor(score + 0.5), 1.0, 5.0));
}

void SyntheticDomain::reviews_of(int64_t user, std::vector<SyntheticReview>& reviews) const {
  reviews.clear();
  const int64_t count = first_review_[user + 1] - first_review_[user];
  Draws draws(static_cast<uint64_t>(options_.seed), target_, Draws::Purpose::activity,
              static_cast<uint64_t>(user));
  std::unordered_set<int64_t> taken;
  for (int64_t n = 0; n < count; ++n) {
    int64_t item = 0;
    for (int attempt = 0;; ++attempt) {
      if (attempt >= 16) {
        // The shelf is nearly exhausted: the next item that is left.
        while (taken.contains(item)) item = (item + 1) % options_.items;
        break;
      }
      const bool by_taste = draws.uniform() < kByTaste;
      const int topic = tastes_[user].draw(draws, static_cast<int>(options_.topics));
      item = (by_taste ? by_topic_[static_cast<std::size_t>(topic)] : all_).draw(draws);
      if (!taken.contains(item)) break;
    }
    taken.insert(item);
    constexpr int64_t kFirst = 1420070400000, kSpan = 252460800;  // 2015, eight years in seconds
    const int64_t time = kFirst + static_cast<int64_t>(draws.below(kSpan)) * 1000 +
                         static_cast<int64_t>(draws.below(1000));
    reviews.push_back({user, item, stars_for(user, item, draws), time});
  }
}

std::string SyntheticDomain::user_id(int64_t user) const {
  return fmt::format("{}U{:08}", target_ ? 'T' : 'S', user);
}

std::string SyntheticDomain::item_id(int64_t item) const {
  return fmt::format("{}I{:08}", target_ ? 'T' : 'S', item);
}

}  // namespace cfaa
