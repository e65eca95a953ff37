#pragma once

// covariance_loss: how far apart the second moments of both domains are (CORAL; ESAM's attribute
// correlation congruence), summed over the pairs (users, items), with Zc the centred columns of Z:
//
//   C = Zc' Zc / (N - 1),   L = (1/D^2) sum_pairs ||C_S - C_T||_F^2
//   dZ_S = 4 / (D^2 (N_S - 1)) Zc_S (C_S - C_T),   dZ_T = 4 / (D^2 (N_T - 1)) Zc_T (C_T - C_S)

#include "host/core/context.h"
#include "host/ops/dispatch.h"
#include "host/ops/embedding_pair.h"

namespace cfaa {

// loss (1) is written; `scale` * dL/dZ is added to `gradients`. Throws Error where a set has less
// than two rows.
CFAA_OP(template <class T>
        void covariance_loss(Context& context, EmbeddingPairs<T> pairs, double scale,
                             VectorView<T> loss, GradientPairs<T> gradients));

}  // namespace cfaa
