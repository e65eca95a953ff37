#pragma once

// What a ranking must be, by plain sorting, and random cases to hold against it.

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "host/eval/scorer.h"

namespace cfaa::reference {

template <class T>
struct Factors {
  int64_t users, items, d;
  std::vector<T> u, v;

  DotScorer<T> scorer() const { return {{u.data(), {users, d}}, {v.data(), {items, d}}}; }

  double score(int64_t user, int64_t item) const {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i) {
      sum += static_cast<double>(u[static_cast<std::size_t>(user * d + i)]) *
             static_cast<double>(v[static_cast<std::size_t>(item * d + i)]);
    }
    return sum;
  }
};

// Normal numbers; `levels` > 0 rounds them to that many steps per unit, which makes ties.
template <class T>
Factors<T> random_factors(int64_t users, int64_t items, int64_t d, uint64_t seed, int levels = 0) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  const auto draw = [&](int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) {
      const double x = normal(engine);
      value = static_cast<T>(levels > 0 ? std::round(x * levels) / levels : x);
    }
    return values;
  };
  Factors<T> factors{users, items, d, {}, {}};
  factors.u = draw(users * d);
  factors.v = draw(items * d);
  return factors;
}

inline UserItems random_items(int64_t users, int64_t items, int64_t most, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int64_t user = 0; user < users; ++user) {
    const auto count = static_cast<int64_t>(engine() % static_cast<uint64_t>(most + 1));
    for (int64_t i = 0; i < count; ++i) {
      pairs.emplace_back(static_cast<int32_t>(user),
                         static_cast<int32_t>(engine() % static_cast<uint64_t>(items)));
    }
  }
  return make_user_items(users, pairs);
}

inline UserItems no_items(int64_t users) {
  return make_user_items(users, {});
}

inline std::vector<int32_t> all_users(int64_t users) {
  std::vector<int32_t> all(static_cast<std::size_t>(users));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
  return all;
}

// Sorts every unmasked item by (score descending, item ascending).
template <class Score>
Lists sorted_lists(const std::vector<int32_t>& users, int64_t items, const UserItems& masked,
                   int64_t k, Score score) {
  Lists lists;
  lists.k = k;
  lists.user = users;
  for (const int32_t user : users) {
    std::vector<std::pair<double, int32_t>> order;
    for (int32_t item = 0; item < items; ++item) {
      if (!masked.contains(user, item)) order.emplace_back(-score(user, item), item);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
      lists.item.push_back(i < order.size() ? order[i].second : -1);
      lists.score.push_back(i < order.size() ? -order[i].first
                                             : -std::numeric_limits<double>::infinity());
    }
  }
  return lists;
}

}  // namespace cfaa::reference
