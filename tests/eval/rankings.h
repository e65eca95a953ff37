#pragma once

// Rankings compared, place by place.

#include <gtest/gtest.h>

#include "bench/reference/rankings.h"

namespace cfaa::test {

using namespace reference;

inline testing::AssertionResult same(const Lists& a, const Lists& b) {
  if (a.k != b.k || a.user != b.user) return testing::AssertionFailure() << "other users or k";
  for (std::size_t i = 0; i < a.item.size(); ++i) {
    if (a.item[i] == b.item[i] && a.score[i] == b.score[i]) continue;
    const auto k = static_cast<std::size_t>(a.k);
    return testing::AssertionFailure()
           << "user " << a.user[i / k] << ", place " << i % k << ": item " << a.item[i] << " ("
           << a.score[i] << ") and item " << b.item[i] << " (" << b.score[i] << ")";
  }
  return testing::AssertionSuccess();
}

}  // namespace cfaa::test
