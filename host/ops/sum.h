#pragma once

// sum: out[0] = scale * sum_i values[i], added up in double in index order, so that a loss has the
// same bits whatever the number of threads.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// `values` is (n), contiguous; `out` is (1).
CFAA_OP(template <class T>
        void sum(Context& context, VectorView<const T> values, double scale, VectorView<T> out));

}  // namespace cfaa
