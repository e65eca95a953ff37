#pragma once

// spd_inverse: A becomes A^-1, for A symmetric positive definite, in place. For closed forms over
// all items, outside of a training step: it waits for the device.

#include <cstdint>

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// a (n, n), contiguous: the lower triangle is read, both are written. Returns 0, or the order of
// the leading minor that is not positive (NaN ends there too); `a` is then of no use. The same bits
// for every number of threads.
CFAA_OP(template <class T>
        int64_t spd_inverse(Context& context, MatrixView<T> a));

}  // namespace cfaa
