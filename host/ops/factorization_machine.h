#pragma once

// factorization_machine: scores of pairs by a factorisation machine of second order (Rendle, ICDM
// '10) on z, the user's and the item's embedding side by side, added to what is there. With s_f =
// <V_f, z> the sums of factor f,
//
//   score_r += b + <w, z_r> + sum_f m_rf 1/2 (s_rf^2 - sum_k V_fk^2 z_rk^2)
//
// where m is the mask of dropout on the factors' terms (element r F + f). Backward, g = dscore m:
//
//   dz_rk = dscore_r w_k + sum_f g_rf (V_fk s_rf - V_fk^2 z_rk)
//   dV_fk += sum_r g_rf (z_rk s_rf - V_fk z_rk^2),  dw += sum_r dscore_r z_r,  db += sum_r dscore_r
//
// Ranking needs no pairs: over all, s_rf is a user's part plus an item's, so that the score is
// <s_user, s_item> plus the machine on either side alone. s is a grouped_linear with weight V's
// columns of that side, and the machine of one side is this op on z with those columns.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"
#include "host/ops/dropout.h"

namespace cfaa {

template <class T>
struct FactorizationMachine {
  MatrixView<const T> factors;  // (F, K) rows may be padded
  VectorView<const T> linear;   // (K)    contiguous
  VectorView<const T> bias;     // (1)
};

// All added to.
template <class T>
struct FactorizationMachineGradient {
  MatrixView<T> factors;  // (F, K)
  VectorView<T> linear;   // (K)
  VectorView<T> bias;     // (1)
};

// z (R, K), rows may be padded; score (R), contiguous.
CFAA_OP(template <class T>
        void factorization_machine(Context& context, MatrixView<const T> z,
                                   const FactorizationMachine<T>& machine, const Dropout& dropout,
                                   VectorView<T> score));

// dz (R, K), rows may be padded, is written.
CFAA_OP(template <class T>
        void factorization_machine_backward(Context& context, MatrixView<const T> z,
                                            const FactorizationMachine<T>& machine,
                                            const Dropout& dropout, VectorView<const T> dscore,
                                            MatrixView<T> dz,
                                            const FactorizationMachineGradient<T>& gradient));

}  // namespace cfaa
