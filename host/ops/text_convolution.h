#pragma once

// text_convolution: the convolution of width w over the words of each text, ReLU, and the maximum
// over positions. With P_t = (K_0 s_t, ..., K_w-1 s_t) the products of word t's vector with the
// filters (one grouped_linear over the distinct words of a step, F outputs for each of the w
// places), text e of words t_0 .. t_L-1 gives
//
//   out_ef = max(0, max_p b_f + sum_j P[t_p+j]_jF+f),   p = 0 .. max(L - w, 0)
//
// A text shorter than the window is padded with zeros behind; one without words gives zeros. Kept
// is the first p of the maximum, or -1 where the maximum is not above 0. Backward:
//
//   dP[t]_jF+f = sum over the occurrences (e, q) of word t of dout_ef where position_ef + j = q
//   db_f += sum_e dout_ef where position_ef >= 0
//
// A word's gradient is gathered over its listed occurrences in their order, so that nothing is
// added by two threads; both lists are made by the host with the batch.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// Text e is word[offset[e]] .. word[offset[e + 1] - 1]. Arrays may be longer than what is used.
struct TextLists {
  VectorView<const int32_t> offset;  // (E + 1)
  VectorView<const int32_t> word;    // (L)  rows of P
};

// The same entries by word: occurrence i of [offset[t], offset[t + 1]) is place[i] of text[i].
struct WordOccurrences {
  VectorView<const int32_t> offset;  // (W + 1)
  VectorView<const int32_t> text;    // (L)  ascending within a word
  VectorView<const int32_t> place;   // (L)
};

// product (W, width F), rows may be padded; bias (F), contiguous; out (E, F), rows may be padded;
// position (E, F), contiguous.
CFAA_OP(template <class T>
        void text_convolution(Context& context, MatrixView<const T> product,
                              VectorView<const T> bias, int64_t width, const TextLists& texts,
                              MatrixView<T> out, MatrixView<int32_t> position));

// dout (E, F) -> dproduct (W, width F), written; a word that does not occur gets zeros; dbias (F),
// contiguous, is added to.
CFAA_OP(template <class T>
        void text_convolution_backward(Context& context, MatrixView<const T> dout,
                                       MatrixView<const int32_t> position, int64_t width,
                                       const WordOccurrences& words, MatrixView<T> dproduct,
                                       VectorView<T> dbias));

}  // namespace cfaa
