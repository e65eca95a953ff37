#pragma once

// embedding_bag: weighted sums of a table's rows, one for each bag:
//
//   out_r = sum_{e in bag r} weight_e table[index_e]
//
// An id's row is a bag of one; a user's history is a bag of the items' rows. Backward, for the rows
// that some bag touched and no others,
//
//   gradient_i = sum_{e: index_e = touched_i} weight_e dout[bag of e]
//
// added up in the order of the bags, so that a row shared by many has the same bits on every run.
// Both directions are lists made by the host with the batch (host/train/batch_assembler.h): the
// device sorts nothing, and its cost depends on the batch alone, not on the table.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// Bag r holds entries offset[r] .. offset[r + 1] - 1. Arrays may be longer than what is used.
template <class T>
struct Bags {
  VectorView<const int32_t> offset;  // (R + 1)
  VectorView<const int32_t> index;   // (E)  rows of the table; may repeat
  VectorView<const T> weight;        // (E)
};

// The same entries by row of the table. `count` is on the device: a replayed graph finds there how
// many rows this batch touches; the arrays have room for `row.size()`.
template <class T>
struct TouchedRows {
  VectorView<const int32_t> count;   // (1)      U <= capacity
  VectorView<const int32_t> row;     // (cap)    ascending, no repeats; the first U
  VectorView<const int32_t> offset;  // (cap + 1)
  VectorView<const int32_t> bag;     // (E)      ascending within a row
  VectorView<const T> weight;        // (E)
};

// table (V, C), out (R, C); rows may be padded. An empty bag gives zeros.
CFAA_OP(template <class T>
        void embedding_bag(Context& context, MatrixView<const T> table, const Bags<T>& bags,
                           MatrixView<T> out));

// dout (R, C) -> gradient (cap, C), whose first U rows are written.
CFAA_OP(template <class T>
        void embedding_bag_backward(Context& context, MatrixView<const T> dout,
                                    const TouchedRows<T>& touched, MatrixView<T> gradient));

}  // namespace cfaa
