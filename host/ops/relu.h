#pragma once

// relu, in place:  x = max(0, x);  backward, in place:  dx = 0 where the result was 0. For rows
// that no layer makes (grouped_linear has its own).

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// x (R, C), rows may be padded. NaN stays NaN.
CFAA_OP(template <class T> void relu(Context& context, MatrixView<T> x));

// y (R, C), what relu left; dx (R, C), rows may be padded.
CFAA_OP(template <class T>
        void relu_backward(Context& context, MatrixView<const T> y, MatrixView<T> dx));

}  // namespace cfaa
