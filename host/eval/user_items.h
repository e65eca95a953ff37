#pragma once

// Items of each user: the ones to leave out of a ranking, or the ones it should find.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace cfaa {

struct UserItems {
  std::vector<int64_t> offset;  // (users + 1)
  std::vector<int32_t>
      item;  // those of user u: item[offset[u]] ... item[offset[u + 1] - 1], sorted

  int64_t users() const { return static_cast<int64_t>(offset.size()) - 1; }

  std::span<const int32_t> of(int64_t user) const {
    const auto u = static_cast<std::size_t>(user);
    return std::span(item).subspan(static_cast<std::size_t>(offset[u]),
                                   static_cast<std::size_t>(offset[u + 1] - offset[u]));
  }
  bool contains(int64_t user, int32_t which) const {
    const auto items = of(user);
    return std::binary_search(items.begin(), items.end(), which);
  }
};

// From (user, item) pairs in any order; a pair that comes twice counts once.
UserItems make_user_items(int64_t users, std::vector<std::pair<int32_t, int32_t>> pairs);

}  // namespace cfaa
