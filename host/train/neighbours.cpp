#include "host/train/neighbours.h"

namespace cfaa {
namespace {

// Rows come sorted by (user, item), so filling them in order leaves both sides' edges sorted.
// A row without a label is no part of anybody's history.
Neighbours group(int64_t count, const SplitRows& rows, const std::vector<int32_t>& own,
                 const std::vector<int32_t>& other) {
  Neighbours result;
  result.offset.assign(static_cast<std::size_t>(count) + 1, 0);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (rows.has_label(i)) ++result.offset[static_cast<std::size_t>(own[i]) + 1];
  }
  for (std::size_t i = 1; i < result.offset.size(); ++i) result.offset[i] += result.offset[i - 1];
  std::vector<int64_t> next(result.offset.begin(), result.offset.end() - 1);
  result.other.resize(static_cast<std::size_t>(result.offset.back()));
  result.row.resize(result.other.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!rows.has_label(i)) continue;
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(own[i])]++);
    result.other[at] = other[i];
    result.row[at] = static_cast<int32_t>(i);
  }
  return result;
}

}  // namespace

PerSide<Neighbours> make_neighbours(const Domain& domain) {
  const SplitRows& train = domain.train;
  return {group(domain.users.size(), train, train.user, train.item),
          group(domain.items.size(), train, train.item, train.user)};
}

}  // namespace cfaa
