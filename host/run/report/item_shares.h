#pragma once

// Which items a model recommends, and which of the held-out ones it finds, by how popular they are
// in training.

#include <cstdint>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/run/ranking_model.h"

namespace cfaa {

// Items that are about as popular; the first class are the cold ones, without an interaction in
// training.
struct ItemClass {
  std::string name;
  int64_t items = 0;
  int64_t held_out = 0;  // positives of the test split that are of it
};

struct ItemClasses {
  std::vector<ItemClass> classes;
  std::vector<int32_t> of_item;  // (items)
};
ItemClasses classify_items(const Domain& domain);

// Of the lists of all users with something held out.
struct ItemShares {
  std::string run;
  int64_t top = 0, users = 0;
  std::vector<double> recommended;  // by class, of the places in the lists
  std::vector<int64_t> found;       // by class, held-out positives that are in their user's list
  double coverage = 0;              // items that are in some list, of all
};
ItemShares share_items(Context& context, RankingModel& model, std::size_t which,
                       const ItemClasses& classes, int64_t top);

}  // namespace cfaa
