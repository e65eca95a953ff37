#pragma once

// review_input: puts the batch's review vectors, float whatever the model's precision, in their
// columns of a tower's input:  out_rc = review_rc

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// review, out (R, C), in device memory; rows may be padded.
CFAA_OP(template <class T>
        void review_input(Context& context, MatrixView<const float> review, MatrixView<T> out));

}  // namespace cfaa
