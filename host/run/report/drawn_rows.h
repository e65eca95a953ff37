#pragma once

// A sample of users or items to show, the same in every report of the data.

#include <algorithm>
#include <string_view>
#include <vector>

#include "host/data/dataset.h"
#include "host/data/keyed_draw.h"

namespace cfaa {

// All of `rows`, which ascend, or the `most` whose ids have the smallest draws, in order.
template <class Index>
std::vector<Index> drawn_rows(std::vector<Index> rows, const IdList& ids, const KeyedDraw& draw,
                              int64_t most) {
  if (std::ssize(rows) <= most) return rows;
  std::sort(rows.begin(), rows.end(),
            [&](Index a, Index b) { return draw.bits(ids[a], "") < draw.bits(ids[b], ""); });
  rows.resize(static_cast<std::size_t>(most));
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace cfaa
