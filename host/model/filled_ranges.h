#pragma once

// Which bytes of a batch hold something. Its lists have room for the longest histories that could
// meet in one batch; what a step copies to the device is what this one has.

#include <cstddef>
#include <vector>

#include "host/model/batch.h"

namespace cfaa {

struct ByteRange {
  std::size_t first, count;
};

// Of a batch in host memory that begins at `memory` and has `bytes`: ranges in ascending order that
// cover all that was assembled. Gaps too short to be worth a copy of their own are within them.
template <class T>
std::vector<ByteRange> filled_ranges(const Batch<T>& batch, const void* memory, std::size_t bytes);

}  // namespace cfaa
