#pragma once

// Adam with bias correction and decoupled weight decay. With g' = clip * g of StepState:
//
//   m = beta1 m + (1 - beta1) g',   v = beta2 v + (1 - beta2) g'^2
//   w = w - rate (correction1 m / (sqrt(correction2 v) + epsilon) + decay w)
//
// with learning_rate and weight_decay for layers, embedding_rate and embedding_decay for rows of
// tables.
//
// Dense for layers; for tables only the rows that the batch touched are read or written. Their
// moments are lazy: a row that is not touched keeps m and v as they are (they do not decay), as
// torch.optim.SparseAdam has it; the correction is that of the global step, and so is the decay of
// weights applied at a row's touches only.
//
// A latch that is set (Context::fault_latch) turns an update into nothing: the parameters stay
// those of the last good step.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"
#include "host/ops/embedding_bag.h"
#include "host/ops/step_state.h"

namespace cfaa {

// Adds the squares of `gradient` to squared_norm[0] (device memory, such as StepState's), in double
// in a fixed order. The first count[0] rows only where `count` is given (in device memory too), all
// of them otherwise.
CFAA_OP(template <class T>
        void gradient_norm(Context& context, MatrixView<const T> gradient, const int32_t* count,
                           double* squared_norm));

// state->clip = max_norm / sqrt(squared_norm) where that is below 1 and max_norm > 0, else 1. Sets
// the latch where squared_norm is not finite (site gradient), and writes the step's number to a
// latch that this step has set, here or before.
CFAA_OP(void clip_gradient(Context& context, StepState* state));

// All (n), contiguous.
CFAA_OP(template <class T>
        void adam(Context& context, const StepState* state, VectorView<const T> gradient,
                  VectorView<T> w, VectorView<T> m, VectorView<T> v));

// w, m, v (V, C), contiguous; gradient (cap, C) as embedding_bag_backward writes it.
CFAA_OP(template <class T>
        void adam_rows(Context& context, const StepState* state, const TouchedRows<T>& touched,
                       MatrixView<const T> gradient, MatrixView<T> w, MatrixView<T> m,
                       MatrixView<T> v));

}  // namespace cfaa
