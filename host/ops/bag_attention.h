#pragma once

// bag_attention: means of rows, one for each bag, weighed by a softmax of the rows' own logits
// (NARRE's review-level attention: a row is a review, a bag the reviews of a user):
//
//   a_re = exp(l_e - m_r) / n_r,   m_r = max_{e in bag r} l_e,   n_r = sum_{e in bag r} exp(l_e -
//   m_r) out_r = sum_{e in bag r} a_re x_e
//
// An empty bag gives zeros. Backward, over the bags that name row i, in their order:
//
//   dx_i += sum_r a_ri dout_r,   dl_i += sum_r a_ri <dout_r, x_i - out_r>
//
// The logits come from layers (grouped_linear), whose backward takes dl. Weights of bags are not
// read, and a bag must not name a row twice.

#include "host/ops/dispatch.h"
#include "host/ops/embedding_bag.h"

namespace cfaa {

// x (V, C), out (R, C), rows may be padded; logit (V), contiguous; softmax (R, 2), contiguous, is
// written: m and n of each bag.
CFAA_OP(template <class T>
        void bag_attention(Context& context, MatrixView<const T> x, VectorView<const T> logit,
                           const Bags<T>& bags, MatrixView<T> out, MatrixView<T> softmax));

// dx (V, C), rows may be padded, and dlogit (V), contiguous: those of touched.row are added to.
CFAA_OP(template <class T>
        void bag_attention_backward(Context& context, MatrixView<const T> x,
                                    VectorView<const T> logit, MatrixView<const T> out,
                                    MatrixView<const T> softmax, MatrixView<const T> dout,
                                    const TouchedRows<T>& touched, MatrixView<T> dx,
                                    VectorView<T> dlogit));

}  // namespace cfaa
