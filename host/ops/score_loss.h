#pragma once

// score_loss: L_C of a batch of scores (logits) and its gradient, in one pass.
//
//   cross entropy   loss = sum_r w_r (log(1 + e^s_r) - y_r s_r),     ds_r = w_r (sigma(s_r) - y_r)
//   pairwise        loss = sum_r sum_j w_rj log(1 + e^(s_rj - s_r)), with rj =
//                   N + r n + j the j-th of the n negatives of row r < N; ds_rj = w_rj
//                   sigma(s_rj - s_r), ds_r = -sum_j ds_rj
//
//   self training   loss = (1/M) sum_r p_r log(1 / p_r) over the M rows whose p_r = sigma(s_r) is
//                   sure: below `low` or above `high`; ds_r = p_r (1 - p_r) (log(1 / p_r) - 1) / M,
//                   which draws p to the nearer end (ESAM). Which rows are sure is held fixed.
//
// Stable for any finite score. Weights carry the mean over the batch and leave out rows: where one
// is 0 the score is not looked at, and its gradient is 0.
// Sums are in double in index order. Where the loss is not finite the Context's latch is set
// (site score).

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// score, label, weight, dscore (R), contiguous; dscore is written. loss (1) is written.
CFAA_OP(template <class T>
        void cross_entropy(Context& context, VectorView<const T> score, VectorView<const T> label,
                           VectorView<const T> weight, VectorView<T> loss, VectorView<T> dscore));

// score, weight, dscore (N + N n), of which weights of the first N are not read.
CFAA_OP(template <class T>
        void pairwise_loss(Context& context, VectorView<const T> score, int64_t negatives,
                           VectorView<const T> weight, VectorView<T> loss, VectorView<T> dscore));

// What self training takes for sure.
struct SureScores {
  double low = 0.2;
  double high = 0.8;
};

// score, weight, dscore (R), contiguous; a row of weight 0 is left out, and weights do not scale.
// loss is 0 where no row is sure.
CFAA_OP(template <class T>
        void self_training_loss(Context& context, VectorView<const T> score,
                                VectorView<const T> weight, const SureScores& sure,
                                VectorView<T> loss, VectorView<T> dscore));

}  // namespace cfaa
