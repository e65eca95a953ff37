#include "host/eval/evaluation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_set>

#include "host/core/error.h"
#include "host/core/philox.h"
#include "host/ops/top_k.h"

namespace cfaa {
namespace {

Lists rank_sampled(Context& context, const Scorer& scorer, const HeldOut& held_out,
                   const std::vector<int32_t>& users, const EvaluationOptions& options) {
  const auto k = static_cast<std::size_t>(options.ranking.k);
  constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  Lists lists;
  lists.k = options.ranking.k;
  lists.user = users;
  lists.item.assign(users.size() * k, -1);
  lists.score.assign(users.size() * k, -std::numeric_limits<double>::infinity());
  std::vector<int32_t> nan_item(users.size(), kNone);
  context.threads().parallel_for(
      static_cast<int64_t>(users.size()), 64, [&](int64_t begin, int64_t end, int) {
        std::vector<double> scores;
        std::vector<std::size_t> order;
        for (auto row = static_cast<std::size_t>(begin); row < static_cast<std::size_t>(end);
             ++row) {
          const auto items =
              sampled_items(held_out, users[row], options.candidates, options.candidate_seed);
          scores.resize(items.size());
          scorer.score(users[row], items, scores.data());
          order.clear();
          for (std::size_t i = 0; i < items.size(); ++i) {
            if (std::isnan(scores[i])) nan_item[row] = std::min(nan_item[row], items[i]);
            order.push_back(i);
          }
          if (nan_item[row] != kNone) continue;
          const std::size_t shown = std::min(k, items.size());
          std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown),
                            order.end(), [&](std::size_t a, std::size_t b) {
                              return ranks_before(scores[a], items[a], scores[b], items[b]);
                            });
          for (std::size_t i = 0; i < shown; ++i) {
            lists.item[row * k + i] = items[order[i]];
            lists.score[row * k + i] = scores[order[i]];
          }
        }
      });
  for (std::size_t row = 0; row < users.size(); ++row) {
    if (nan_item[row] != kNone) throw NanScore(users[row], nan_item[row]);
  }
  return lists;
}

Part measure_part(const Lists& lists, const UserItems& positives, const EvaluationOptions& options,
                  int64_t items) {
  const UserMetrics metrics = measure_users(lists, positives, options.ks);
  Part part;
  part.users = static_cast<int64_t>(metrics.user.size());
  for (const int32_t count : metrics.positives) part.positives += count;
  part.metrics = summarize(metrics, lists, items);
  return part;
}

// The positives for which keep(user, item) holds.
template <class Keep>
UserItems some_of(const UserItems& positives, Keep keep) {
  UserItems some;
  some.offset = {0};
  for (int64_t user = 0; user < positives.users(); ++user) {
    for (const int32_t item : positives.of(user)) {
      if (keep(user, item)) some.item.push_back(item);
    }
    some.offset.push_back(static_cast<int64_t>(some.item.size()));
  }
  return some;
}

}  // namespace

std::vector<int32_t> sampled_items(const HeldOut& held_out, int32_t user, int64_t candidates,
                                   uint64_t seed) {
  const auto masked = held_out.masked.of(user), positives = held_out.positives.of(user);
  std::vector<int32_t> excluded;
  std::set_union(masked.begin(), masked.end(), positives.begin(), positives.end(),
                 std::back_inserter(excluded));
  const int64_t others = held_out.items - static_cast<int64_t>(excluded.size());
  const int64_t wanted = std::min(candidates, others);

  // Floyd's sampling: `wanted` distinct positions among the other items, by as many draws.
  const Philox random{seed};
  std::unordered_set<int64_t> chosen;
  for (int64_t last = others - wanted; last < others; ++last) {
    const auto draw = static_cast<int64_t>(random.below(
        static_cast<uint64_t>(last) + 1, static_cast<uint64_t>(last), static_cast<uint64_t>(user)));
    if (!chosen.insert(draw).second) chosen.insert(last);
  }
  std::vector<int64_t> positions(chosen.begin(), chosen.end());
  std::sort(positions.begin(), positions.end());

  // Position p stands for the p-th item that is not excluded.
  std::vector<int32_t> items;
  std::size_t before = 0;
  for (const int64_t position : positions) {
    auto item = position + static_cast<int64_t>(before);
    while (before < excluded.size() && excluded[before] <= item) {
      ++before;
      ++item;
    }
    items.push_back(static_cast<int32_t>(item));
  }
  std::vector<int32_t> all;
  std::set_difference(positives.begin(), positives.end(), masked.begin(), masked.end(),
                      std::back_inserter(all));
  const auto middle = static_cast<std::ptrdiff_t>(all.size());
  all.insert(all.end(), items.begin(), items.end());
  std::inplace_merge(all.begin(), all.begin() + middle, all.end());
  return all;
}

Evaluation evaluate(Context& context, const Scorer& scorer, const HeldOut& held_out,
                    EvaluationOptions options) {
  CFAA_ASSERT(scorer.users() == held_out.users() && scorer.items() == held_out.items);
  CFAA_ASSERT(held_out.masked.users() == held_out.users() && !options.ks.empty());
  options.ranking.k = *std::max_element(options.ks.begin(), options.ks.end());
  std::vector<int32_t> users;
  for (int64_t user = 0; user < held_out.users(); ++user) {
    if (!held_out.positives.of(user).empty()) users.push_back(static_cast<int32_t>(user));
  }

  Evaluation result;
  result.skipped_users = held_out.users() - static_cast<int64_t>(users.size());
  result.lists = options.candidates > 0
                     ? rank_sampled(context, scorer, held_out, users, options)
                     : scorer.rank(context, users, held_out.masked, options.ranking);
  result.per_user = measure_users(result.lists, held_out.positives, options.ks);
  result.all = measure_part(result.lists, held_out.positives, options, held_out.items);
  result.cold_users =
      measure_part(result.lists,
                   some_of(held_out.positives,
                           [&](int64_t user, int32_t) {
                             return held_out.cold_user[static_cast<std::size_t>(user)] != 0;
                           }),
                   options, held_out.items);
  result.cold_items =
      measure_part(result.lists,
                   some_of(held_out.positives,
                           [&](int64_t, int32_t item) {
                             return held_out.cold_item[static_cast<std::size_t>(item)] != 0;
                           }),
                   options, held_out.items);
  if (options.bootstrap > 0) {
    result.intervals =
        bootstrap(context, result.per_user, options.bootstrap, options.bootstrap_seed);
  }
  return result;
}

}  // namespace cfaa
