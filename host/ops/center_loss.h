#pragma once

// center_loss: ESAM's center-wise clustering. The items that a query (a user of the batch) was
// compared with gather by their label around a centre, and the two centres keep apart. With
// x_j = v_j / |v_j|, and c_k the mean of the query's x of label k,
//
//   L = (1/N) sum_q [ sum_j max(0, |x_j - c_k(j)|^2 - inner) + max(0, outer - |c_0 - c_1|^2) ]
//
// the second term only where the query has both labels. Query q < N of a batch of N (1 + n) rows
// owns row q and its n negatives N + q n .. N + q n + n - 1, as host/model/batch.h lays them out.
// The gradient runs through the centres and the norms; a row of zeros gets none.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

struct CenterMargins {
  double inner = 0.2;
  double outer = 0.9;
};

// v, dv (N (1 + n), D), rows may be padded; label, weight (N (1 + n)), contiguous: a label above
// 1/2 is 1, a row of weight 0 is left out (weights do not scale). loss (1) is written, `scale`
// * dL/dv is added to dv.
CFAA_OP(template <class T>
        void center_loss(Context& context, MatrixView<const T> v, int64_t negatives,
                         VectorView<const T> label, VectorView<const T> weight,
                         const CenterMargins& margins, double scale, VectorView<T> loss,
                         MatrixView<T> dv));

}  // namespace cfaa
