#pragma once

// row_dot: scores of pairs, added to what is there:
//
//   score_r += scale <u_r, v_r>
//   backward:  du_r += scale dscore_r v_r,   dv_r += scale dscore_r u_r

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// u, v (R, D), rows may be padded; score (R), contiguous.
CFAA_OP(template <class T>
        void row_dot(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
                     VectorView<T> score));

CFAA_OP(template <class T>
        void row_dot_backward(Context& context, MatrixView<const T> u, MatrixView<const T> v,
                              double scale, VectorView<const T> dscore, MatrixView<T> du,
                              MatrixView<T> dv));

}  // namespace cfaa
