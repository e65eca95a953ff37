#include "host/run/report/item_shares.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "host/eval/held_out.h"

namespace cfaa {
namespace {

constexpr std::array<const char*, 4> kNames = {"cold: not in training", "the less popular half",
                                               "the next 40 %", "the most popular 10 %"};

}  // namespace

ItemClasses classify_items(const Domain& domain) {
  std::vector<int64_t> interactions(static_cast<std::size_t>(domain.items.size()));
  for (const int32_t item : domain.train.item) ++interactions[static_cast<std::size_t>(item)];
  std::vector<int32_t> warm;
  ItemClasses result;
  result.of_item.resize(interactions.size());
  for (std::size_t item = 0; item < interactions.size(); ++item) {
    if (interactions[item] > 0) warm.push_back(static_cast<int32_t>(item));
  }
  std::stable_sort(warm.begin(), warm.end(), [&](int32_t a, int32_t b) {
    return interactions[static_cast<std::size_t>(a)] < interactions[static_cast<std::size_t>(b)];
  });
  for (std::size_t i = 0; i < warm.size(); ++i) {
    const std::size_t tenth = 10 * i / warm.size();
    result.of_item[static_cast<std::size_t>(warm[i])] = tenth < 5 ? 1 : tenth < 9 ? 2 : 3;
  }
  for (const char* name : kNames) result.classes.push_back({name, 0, 0});
  for (const int32_t of : result.of_item) ++result.classes[static_cast<std::size_t>(of)].items;
  for (std::size_t row = 0; row < domain.test.item.size(); ++row) {
    if (domain.test.label[row] != 1) continue;
    const auto item = static_cast<std::size_t>(domain.test.item[row]);
    ++result.classes[static_cast<std::size_t>(result.of_item[item])].held_out;
  }
  return result;
}

ItemShares share_items(Context& context, RankingModel& model, std::size_t which,
                       const ItemClasses& classes, int64_t top) {
  const HeldOut held_out = make_held_out(model.domain(which), Split::test, Mask::automatic);
  std::vector<int32_t> users;
  for (int32_t user = 0; user < held_out.users(); ++user) {
    if (!held_out.positives.of(user).empty()) users.push_back(user);
  }
  RankingOptions options;
  options.k = std::min(top, held_out.items);
  const Lists lists = model.ranking(which).rank(context, users, held_out.masked, options);

  ItemShares shares;
  shares.top = top;
  shares.users = std::ssize(users);
  shares.recommended.resize(classes.classes.size());
  shares.found.resize(classes.classes.size());
  std::vector<char> shown(classes.of_item.size());
  int64_t places = 0;
  for (std::size_t row = 0; row < users.size(); ++row) {
    const auto wanted = held_out.positives.of(users[row]);
    for (const int32_t item : lists.of(row)) {
      if (item < 0) break;
      const auto at = static_cast<std::size_t>(item);
      const auto of = static_cast<std::size_t>(classes.of_item[at]);
      shown[at] = 1;
      ++shares.recommended[of];
      ++places;
      shares.found[of] += std::binary_search(wanted.begin(), wanted.end(), item);
    }
  }
  for (double& share : shares.recommended)
    share /= static_cast<double>(std::max<int64_t>(places, 1));
  shares.coverage = static_cast<double>(std::accumulate(shown.begin(), shown.end(), int64_t{0})) /
                    static_cast<double>(std::max<std::size_t>(shown.size(), 1));
  return shares;
}

}  // namespace cfaa
