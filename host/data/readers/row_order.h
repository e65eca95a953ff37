#pragma once

// Rows as the steps of `prepare` want them: by user, then item; equal pairs in order of time,
// rating and text, so that no order of files or threads shows.

#include <cstddef>
#include <vector>

#include "host/core/parallel.h"
#include "host/data/interactions.h"

namespace cfaa {

// The rows of all blocks, which are used up. Users are below `users`. Rows are first dealt to
// buckets of about `bucket_rows`, so that what is sorted at a time stays in memory and the rest is
// read and written in long runs.
InteractionRows in_row_order(std::vector<InteractionRows> blocks, std::size_t users,
                             ThreadPool& pool, std::size_t bucket_rows = std::size_t{1} << 20);

}  // namespace cfaa
