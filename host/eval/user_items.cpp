#include "host/eval/user_items.h"

#include "host/core/error.h"

namespace cfaa {

UserItems make_user_items(int64_t users, std::vector<std::pair<int32_t, int32_t>> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  UserItems result;
  result.offset.assign(static_cast<std::size_t>(users) + 1, 0);
  result.item.reserve(pairs.size());
  for (const auto& [user, item] : pairs) {
    CFAA_ASSERT(user >= 0 && user < users && item >= 0);
    ++result.offset[static_cast<std::size_t>(user) + 1];
    result.item.push_back(item);
  }
  for (std::size_t u = 1; u < result.offset.size(); ++u) result.offset[u] += result.offset[u - 1];
  return result;
}

}  // namespace cfaa
