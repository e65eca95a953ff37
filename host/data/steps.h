#pragma once

// The steps of `prepare`, each on the rows of one domain, sorted by (user, item) and left so. Ids
// keep their numbers; those left without rows are dropped when the domain is written.

#include <cstdint>
#include <string>
#include <vector>

#include "host/data/interactions.h"
#include "host/data/keyed_draw.h"
#include "host/data/prepare_options.h"

namespace cfaa {

struct Counts {
  int64_t interactions = 0, users = 0, items = 0;
  bool operator==(const Counts&) const = default;
};
Counts count(const Interactions& domain);

// Keeps one row of each (user, item). Rows of a pair stand in order of time, then rating, then
// text, so `latest` among equal times is a rule too.
void remove_duplicates(Interactions& domain, Duplicates rule, const std::string& name);

// The largest set of rows in which every user has at least `minima.user` rows and every item at
// least `minima.item`: what is left when users and items below are removed until none is. O(rows),
// and rows are read from front to back while each pass removes many.
void keep_core(Interactions& domain, const CoreMinima& minima);

struct OverlapCounts {
  int64_t users = 0, items = 0;  // raw ids with rows in both domains
};
OverlapCounts resolve_overlap(Interactions& source, Interactions& target, Overlap rule);

// Drops the rows rated below `positive`.
void drop_negatives(Interactions& domain, double positive);

// Keeps a row with probability `share`, by the draw "keep".
void keep_share(Interactions& domain, const std::string& name, double share, int64_t seed);

// The split of each row, by the draw "split".
//   ratio: a row falls to train, valid or test by its own draw.
//   leave_one_out: of each user with three rows or more, the latest is test, the one before valid.
//   time: of the domain's rows in order of time the first share is train, then valid, then test.
// Equal times are ordered by the draw.
std::vector<Split> split(const Interactions& domain, const std::string& name, SplitRule rule,
                         const SplitShares& shares, int64_t seed);

// Which rows keep their labels: all of the test split, and the others with probability `share` by
// the draw "labels N", N being `number`. A larger share keeps what a smaller one kept.
std::vector<char> draw_labels(const Interactions& domain, const std::vector<Split>& splits,
                              const std::string& name, double share, int64_t number, int64_t seed);
KeyedDraw labels_draw(const std::string& name, int64_t number, int64_t seed);

inline bool is_positive(float rating, double positive) {
  return rating >= static_cast<float>(positive);
}

}  // namespace cfaa
