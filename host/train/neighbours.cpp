#include "host/train/neighbours.h"

namespace cfaa {
namespace {

// Rows come sorted by (user, item), so filling them in order leaves both sides' edges sorted.
Neighbours group(int64_t count, const std::vector<int32_t>& own,
                 const std::vector<int32_t>& other) {
  Neighbours result;
  result.offset.assign(static_cast<std::size_t>(count) + 1, 0);
  for (const int32_t entity : own) ++result.offset[static_cast<std::size_t>(entity) + 1];
  for (std::size_t i = 1; i < result.offset.size(); ++i) result.offset[i] += result.offset[i - 1];
  std::vector<int64_t> next(result.offset.begin(), result.offset.end() - 1);
  result.other.resize(own.size());
  result.row.resize(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(own[i])]++);
    result.other[at] = other[i];
    result.row[at] = static_cast<int32_t>(i);
  }
  return result;
}

}  // namespace

PerSide<Neighbours> make_neighbours(const Domain& domain) {
  const SplitRows& train = domain.train;
  return {group(domain.users.size(), train.user, train.item),
          group(domain.items.size(), train.item, train.user)};
}

}  // namespace cfaa
