#pragma once

// Initial values: normal numbers with mean 0 and deviation `scale`, by Box and Muller from Philox.
// They are made on the host and so are the same for every device.

#include <cstdint>

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa {

// array (rows, cols), contiguous. `stream` tells the arrays of one seed apart.
template <class T>
void fill_normal(Context& context, MatrixView<T> array, double scale, uint64_t seed,
                 uint64_t stream);

}  // namespace cfaa
