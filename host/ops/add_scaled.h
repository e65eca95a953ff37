#pragma once

// add_scaled:  y += factor[0] * x,  the factor in device memory (the weight of a loss), so that a
// schedule can change it under a replayed graph. No factor (nullptr) is 1.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// x, y (R, C); rows may be padded.
CFAA_OP(template <class T>
        void add_scaled(Context& context, const double* factor, MatrixView<const T> x,
                        MatrixView<T> y));

}  // namespace cfaa
