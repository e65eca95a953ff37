#pragma once

// Who interacted with whom in training, from both sides. Only the training split is ever in here.

#include <cstdint>
#include <vector>

#include "host/data/dataset.h"
#include "host/model/batch.h"

namespace cfaa {

// Edges of entity e: offset[e] .. offset[e + 1] - 1, in the order of the other side's index.
struct Neighbours {
  std::vector<int64_t> offset;  // (count + 1)
  std::vector<int32_t> other;   // (edges)  the item of a user, the user of an item
  std::vector<int32_t> row;     // (edges)  the training interaction

  int64_t count() const { return static_cast<int64_t>(offset.size()) - 1; }
  int64_t degree(int64_t entity) const {
    const auto e = static_cast<std::size_t>(entity);
    return offset[e + 1] - offset[e];
  }
};

PerSide<Neighbours> make_neighbours(const Domain& domain);

}  // namespace cfaa
