#pragma once

// bag_max: the elementwise maximum over rows, one for each bag:
//
//   out_rc = max_{e in bag r} max(0, x[index_e]_c)
//
// `from` keeps the row of x that gave it, the first of the bag's in a tie, and -1 where no entry is
// above 0 (as in an empty bag). Backward, for the rows that some bag names,
//
//   dx_ic += sum_{r: i in bag r} dout_rc where from_rc = i
//
// in the order of the bags. Weights are not read, and a bag must not name a row twice.

#include "host/ops/dispatch.h"
#include "host/ops/embedding_bag.h"

namespace cfaa {

// x (V, C), out (R, C), rows may be padded; from (R, C), contiguous.
CFAA_OP(template <class T>
        void bag_max(Context& context, MatrixView<const T> x, const Bags<T>& bags,
                     MatrixView<T> out, MatrixView<int32_t> from));

// dout (R, C) -> dx (V, C), whose rows touched.row are added to.
CFAA_OP(template <class T>
        void bag_max_backward(Context& context, MatrixView<const T> dout,
                              MatrixView<const int32_t> from, const TouchedRows<T>& touched,
                              MatrixView<T> dx));

}  // namespace cfaa
