#pragma once

// A split to be predicted: what each user should be recommended, and what not.

#include <cstdint>
#include <vector>

#include "host/data/interactions.h"
#include "host/eval/user_items.h"

namespace cfaa {

struct Domain;

struct HeldOut {
  int64_t items = 0;
  UserItems masked;             // per user: not to be recommended
  UserItems positives;          // per user: to be found
  std::vector<char> cold_user;  // (users)  1: without a training interaction
  std::vector<char> cold_item;  // (items)
  int64_t users() const { return positives.users(); }
};

// Whose items a user is not recommended. `automatic`: what was known when the split was to be
// predicted, as RecBole does: training items, and validation items too when testing.
enum class Mask { automatic, train, train_valid, none };

// What `automatic` means for a split.
Mask resolve(Mask mask, Split split);

// Positives are the rows of the split with label 1; masked are rows of whatever label.
HeldOut make_held_out(const Domain& domain, Split split, Mask mask);

}  // namespace cfaa
