#pragma once

// sparse_product: a block of the product of two sparse matrices, dense:
//
//   out_rc (+)= alpha sum_k A(row_r, k) B(k, first + c)
//
// It makes Gram matrices (likers x liked, terms x terms), scores (a user's items x their
// neighbours, a user's words x the items') and sums of such. Added up in T, in ascending k: the
// same bits for every split into blocks and every number of threads.

#include <cstdint>

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// A sparse matrix by rows, in the memory of the context's device.
struct SparseView {
  int64_t rows = 0, columns = 0;
  const int64_t* offset = nullptr;  // (rows + 1)
  const int32_t* column = nullptr;  // (entries) ascending within a row
  const float* value = nullptr;     // (entries)
};

// rows (R): which rows of A; data null: all of them. A (., K), B (K, N); out (R, C), rows may be
// padded, 0 <= first, first + C <= N. `add`: to what is there.
CFAA_OP(template <class T>
        void sparse_product(Context& context, const SparseView& a, VectorView<const int32_t> rows,
                            const SparseView& b, double alpha, int64_t first, bool add,
                            MatrixView<T> out));

}  // namespace cfaa
