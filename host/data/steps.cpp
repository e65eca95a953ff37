#include "host/data/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/core/error.h"
#include "host/data/keyed_draw.h"

namespace cfaa {
namespace {

template <class Keep>
void filter(Interactions& domain, const Keep& keep) {
  auto& rows = domain.rows;
  rows.erase(
      std::remove_if(rows.begin(), rows.end(), [&](const Interaction& row) { return !keep(row); }),
      rows.end());
}

// Which numbers have a row.
std::vector<char> present(const Interactions& domain, uint32_t Interaction::*side,
                          std::size_t ids) {
  std::vector<char> has(ids, 0);
  for (const Interaction& row : domain.rows) has[row.*side] = 1;
  return has;
}

// Marks in both domains the numbers whose raw id has rows in both.
int64_t mark_common(const std::vector<std::string_view>& a, std::vector<char>& in_a,
                    const std::vector<std::string_view>& b, std::vector<char>& in_b) {
  int64_t common = 0;
  std::vector<char> common_a(a.size(), 0), common_b(b.size(), 0);
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] < b[j]) {
      ++i;
    } else if (b[j] < a[i]) {
      ++j;
    } else {
      if (in_a[i] && in_b[j]) common_a[i] = common_b[j] = 1, ++common;
      ++i, ++j;
    }
  }
  in_a = std::move(common_a);
  in_b = std::move(common_b);
  return common;
}

// Rows of each user and of each item.
struct Degrees {
  std::vector<uint32_t> user, item;

  explicit Degrees(const Interactions& domain)
      : user(domain.users.size(), 0), item(domain.items.size(), 0) {
    for (const Interaction& row : domain.rows) ++user[row.user], ++item[row.item];
  }
  bool below(const Interaction& row, const CoreMinima& minima) const {
    return user[row.user] < minima.user || item[row.item] < minima.item;
  }
  void remove(const Interaction& row) { --user[row.user], --item[row.item]; }
};

// The k-core by a queue of the users and items below: O(rows) however long a chain of removals is,
// for 4 bytes a row and a bit.
void peel(Interactions& domain, const CoreMinima& minima, Degrees& degrees) {
  const InteractionRows& rows = domain.rows;
  const std::size_t users = domain.users.size(), items = domain.items.size();
  // Rows of each node: those of a user stand together, those of an item through `by_item`.
  std::vector<uint32_t> first_of_user(users + 1, 0), first_of_item(items + 1, 0);
  for (std::size_t u = 0; u < users; ++u) first_of_user[u + 1] = first_of_user[u] + degrees.user[u];
  for (std::size_t i = 0; i < items; ++i) first_of_item[i + 1] = first_of_item[i] + degrees.item[i];
  std::vector<uint32_t> by_item(rows.size()), next(first_of_item.begin(), first_of_item.end());
  for (uint32_t r = 0; r < rows.size(); ++r) by_item[next[rows[r].item]++] = r;

  // A node is a user, or an item behind all users.
  std::vector<bool> gone(rows.size(), false), queued(users + items, false);
  std::vector<std::size_t> queue;
  const auto look_at = [&](std::size_t node) {
    const bool below =
        node < users ? degrees.user[node] < minima.user : degrees.item[node - users] < minima.item;
    if (!below || queued[node]) return;
    queue.push_back(node);
    queued[node] = true;
  };
  for (std::size_t node = 0; node < users + items; ++node) look_at(node);
  const auto remove = [&](uint32_t r) {
    if (gone[r]) return;
    gone[r] = true;
    degrees.remove(rows[r]);
    look_at(rows[r].user);
    look_at(users + rows[r].item);
  };
  while (!queue.empty()) {
    const std::size_t node = queue.back();
    queue.pop_back();
    if (node < users) {
      for (uint32_t r = first_of_user[node]; r < first_of_user[node + 1]; ++r) remove(r);
    } else {
      const std::size_t item = node - users;
      for (uint32_t k = first_of_item[item]; k < first_of_item[item + 1]; ++k) remove(by_item[k]);
    }
  }
  std::size_t kept = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!gone[r]) domain.rows[kept++] = rows[r];
  }
  domain.rows.resize(kept);
}

}  // namespace

Counts count(const Interactions& domain) {
  const auto users = present(domain, &Interaction::user, domain.users.size());
  const auto items = present(domain, &Interaction::item, domain.items.size());
  return {static_cast<int64_t>(domain.rows.size()), std::count(users.begin(), users.end(), 1),
          std::count(items.begin(), items.end(), 1)};
}

void remove_duplicates(Interactions& domain, Duplicates rule, const std::string& name) {
  auto& rows = domain.rows;
  const auto same = [](const Interaction& a, const Interaction& b) {
    return a.user == b.user && a.item == b.item;
  };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (kept == 0 || !same(rows[kept - 1], rows[i])) {
      rows[kept++] = rows[i];
    } else if (rule == Duplicates::latest) {
      rows[kept - 1] = rows[i];
    } else if (rule == Duplicates::error) {
      throw Error(
          fmt::format("{}: user {} reviewed item {} more than once; choose which to keep "
                      "with --duplicates latest|earliest",
                      name, domain.users[rows[i].user], domain.items[rows[i].item]));
    }
  }
  rows.resize(kept);
}

void keep_core(Interactions& domain, const CoreMinima& minima) {
  Degrees degrees(domain);
  // Passes from front to back need no memory but the degrees, and what they read shrinks.
  constexpr std::size_t kWorthwhile = 256;  // a pass must remove one row of so many
  auto& rows = domain.rows;
  for (;;) {
    const std::size_t before = rows.size();
    std::size_t kept = 0;
    for (std::size_t r = 0; r < before; ++r) {
      if (degrees.below(rows[r], minima)) {
        degrees.remove(rows[r]);
      } else {
        if (kept != r) rows[kept] = rows[r];
        ++kept;
      }
    }
    rows.resize(kept);
    if (kept == before) return;
    if ((before - kept) * kWorthwhile < before) break;
  }
  peel(domain, minima, degrees);
}

OverlapCounts resolve_overlap(Interactions& source, Interactions& target, Overlap rule) {
  auto source_users = present(source, &Interaction::user, source.users.size());
  auto target_users = present(target, &Interaction::user, target.users.size());
  auto source_items = present(source, &Interaction::item, source.items.size());
  auto target_items = present(target, &Interaction::item, target.items.size());
  OverlapCounts common;
  common.users = mark_common(source.users, source_users, target.users, target_users);
  common.items = mark_common(source.items, source_items, target.items, target_items);
  if (rule == Overlap::error && common.users + common.items > 0) {
    throw Error(
        fmt::format("{} users and {} items occur in both domains; --overlap drop-target, "
                    "drop-source or separate says what becomes of them",
                    common.users, common.items));
  }
  if (rule == Overlap::drop_target) {
    filter(target, [&](const Interaction& row) {
      return !target_users[row.user] && !target_items[row.item];
    });
  }
  if (rule == Overlap::drop_source) {
    filter(source, [&](const Interaction& row) {
      return !source_users[row.user] && !source_items[row.item];
    });
  }
  return common;
}

void drop_negatives(Interactions& domain, double positive) {
  filter(domain, [&](const Interaction& row) { return is_positive(row.rating, positive); });
}

void keep_share(Interactions& domain, const std::string& name, double share, int64_t seed) {
  if (share >= 1) return;
  KeyedDraw draw("keep", name, seed);
  filter(domain, [&](const Interaction& row) {
    return draw.uniform(domain.users[row.user], domain.items[row.item]) < share;
  });
}

std::vector<Split> split(const Interactions& domain, const std::string& name, SplitRule rule,
                         const SplitShares& shares, int64_t seed) {
  const auto& rows = domain.rows;
  std::vector<Split> splits(rows.size(), Split::train);
  KeyedDraw draw("split", name, seed);
  if (rule == SplitRule::ratio) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const double u = draw.uniform(domain.users[rows[r].user], domain.items[rows[r].item]);
      splits[r] = u < shares.train                  ? Split::train
                  : u < shares.train + shares.valid ? Split::valid
                                                    : Split::test;
    }
    // Rounding of the sum must not make a test row where no test share was asked for.
    if (shares.test == 0) std::replace(splits.begin(), splits.end(), Split::test, Split::valid);
    return splits;
  }
  std::vector<uint64_t> tie(rows.size());
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rule == SplitRule::time && rows[r].time == 0) {
      throw Error(fmt::format("{}: user {}, item {} has no time, which --split time needs", name,
                              domain.users[rows[r].user], domain.items[rows[r].item]));
    }
    tie[r] = draw.bits(domain.users[rows[r].user], domain.items[rows[r].item]);
  }
  const auto earlier = [&](uint32_t a, uint32_t b) {
    if (rows[a].time != rows[b].time) return rows[a].when() < rows[b].when();
    return tie[a] != tie[b] ? tie[a] < tie[b] : a < b;
  };
  if (rule == SplitRule::time) {
    std::sort(order.begin(), order.end(), earlier);
    const double n = static_cast<double>(rows.size());
    const auto train = static_cast<std::size_t>(std::llround(n * shares.train));
    const auto valid = static_cast<std::size_t>(std::llround(n * (shares.train + shares.valid)));
    for (std::size_t i = train; i < order.size(); ++i) {
      splits[order[i]] = i < valid ? Split::valid : Split::test;
    }
    return splits;
  }
  for (std::size_t begin = 0, end; begin < rows.size(); begin = end) {
    end = begin;
    while (end < rows.size() && rows[end].user == rows[begin].user) ++end;
    if (end - begin < 3) continue;
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(begin),
              order.begin() + static_cast<std::ptrdiff_t>(end), earlier);
    splits[order[end - 1]] = Split::test;
    splits[order[end - 2]] = Split::valid;
  }
  return splits;
}

KeyedDraw labels_draw(const std::string& name, int64_t number, int64_t seed) {
  return {"labels " + std::to_string(number), name, seed};
}

std::vector<char> draw_labels(const Interactions& domain, const std::vector<Split>& splits,
                              const std::string& name, double share, int64_t number, int64_t seed) {
  const KeyedDraw draw = labels_draw(name, number, seed);
  std::vector<char> labelled(domain.rows.size());
  for (std::size_t r = 0; r < labelled.size(); ++r) {
    const Interaction& row = domain.rows[r];
    labelled[r] = splits[r] == Split::test ||
                  draw.uniform(domain.users[row.user], domain.items[row.item]) < share;
  }
  return labelled;
}

}  // namespace cfaa
