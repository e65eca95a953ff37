#pragma once

// gated_product: NARRE's scores of pairs, added to what is there:
//
//   score_r += b + sum_k w_k m_rk max(0, x_rk y_rk)
//
// where m is the mask of dropout on the products (element r K + k). Backward, over the products
// above 0:  dx_rk = dscore_r w_k m_rk y_rk,  dy_rk = dscore_r w_k m_rk x_rk,
//           dw_k += sum_r dscore_r m_rk x_rk y_rk,  db += sum_r dscore_r.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"
#include "host/ops/dropout.h"

namespace cfaa {

// x, y (R, K), rows may be padded; weight (K), score (R), contiguous; bias (1).
CFAA_OP(template <class T>
        void gated_product(Context& context, MatrixView<const T> x, MatrixView<const T> y,
                           VectorView<const T> weight, VectorView<const T> bias,
                           const Dropout& dropout, VectorView<T> score));

// dx, dy (R, K), rows may be padded, are written; dweight (K), dbias (1) are added to.
CFAA_OP(template <class T>
        void gated_product_backward(Context& context, MatrixView<const T> x,
                                    MatrixView<const T> y, VectorView<const T> weight,
                                    const Dropout& dropout, VectorView<const T> dscore,
                                    MatrixView<T> dx, MatrixView<T> dy, VectorView<T> dweight,
                                    VectorView<T> dbias));

// Rows whose dot product is the sum above, for ranking: max(0, x y) = x+ y+ + x- y- with x+ =
// max(0, x), x- = max(0, -x). out (R, 2 K) = (w x+, w x-), rows may be padded; without a weight
// (data null) w is 1.
CFAA_OP(template <class T>
        void gated_product_rows(Context& context, MatrixView<const T> x,
                                VectorView<const T> weight, MatrixView<T> out));

}  // namespace cfaa
