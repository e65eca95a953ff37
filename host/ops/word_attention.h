#pragma once

// word_attention: TDAR's text memory. The words of a row (those of a user's reviews) are weighed by
// how well their keys fit the row's query, and their fixed vectors are averaged:
//
//   a_rw = softmax over the words w of row r of  scale <query_r, key_w>
//   out_r = sum_w a_rw value_w
//
// A row without words gives zeros. Backward, with d_rw = scale a_rw <dout_r, value_w - out_r>:
//
//   dquery_r = sum_w d_rw key_w,   gradient_i = sum_{r: touched_i in row r} d_ri query_r
//
// in the order of the rows. Values get no gradient: they are the encoder's word vectors. Weights of
// bags are not read; the words of a row ascend without repeats, so that the backward finds a word's
// place in a row by bisection.

#include "host/ops/dispatch.h"
#include "host/ops/embedding_bag.h"

namespace cfaa {

// query (R, K), key (V, K), value (V, C), out (R, C), rows may be padded; share (E), contiguous, is
// written: a of every entry of the bags.
CFAA_OP(template <class T>
        void word_attention(Context& context, MatrixView<const T> query, MatrixView<const T> key,
                            MatrixView<const T> value, double scale, const Bags<T>& bags,
                            MatrixView<T> out, VectorView<T> share));

// dout (R, C) -> dquery (R, K), written, and gradient (cap, K) of the keys, whose first
// touched.count rows are written.
CFAA_OP(template <class T>
        void word_attention_backward(Context& context, MatrixView<const T> query,
                                     MatrixView<const T> key, MatrixView<const T> value,
                                     double scale, const Bags<T>& bags, VectorView<const T> share,
                                     MatrixView<const T> dout, const TouchedRows<T>& touched,
                                     MatrixView<T> dquery, MatrixView<T> gradient));

}  // namespace cfaa
