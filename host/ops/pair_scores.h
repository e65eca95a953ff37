#pragma once

// pair_scores: the MLP scorer for a block of users and items, every user with every item, without
// users x items x hidden in memory. The first layer is split: its part of a user (bias included)
// and of an item are computed once each by grouped_linear; the rest is done per pair:
//
//   x_1 = relu(user_r + item_c),   x_l+1 = relu(W_l x_l + b_l),   score_rc (+)= <w_out, x_L> + b
//
// The last layer has one output. With no further hidden layer the work is one fused pass; with
// some, tiles of pairs go through GEMMs. Scores of finite numbers; NaN gives NaN. Same bits for
// every split into blocks and any number of threads.

#include <span>

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

template <class T>
struct PairLayer {
  MatrixView<const T> weight;  // (out, in), contiguous
  VectorView<const T> bias;    // (out)
};

// users (R, h), items (C, h); `layers`: hidden layers behind the first, then the last of one
// output; scores (R, C), rows may be padded. `add`: to what is there (a dot product).
CFAA_OP(template <class T>
        void pair_scores(Context& context, MatrixView<const T> users, MatrixView<const T> items,
                         std::span<const PairLayer<T>> layers, bool add, MatrixView<T> scores));

}  // namespace cfaa
