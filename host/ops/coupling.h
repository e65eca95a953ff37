#pragma once

// Couplings: Q independent one-dimensional transport problems between K source and K target
// samples with uniform weights 1/K and cost C_ij = (m^S_i - m^T_j)^2.
//
//   sinkhorn  entropic, epsilon_q = epsilon * mean(C). One iteration updates the source potential,
//             then the target potential, both from zero, in scalings of the kernel
//             exp((f_i + g_j - C_ij) / epsilon_q) with the potentials absorbed when they grow:
//             finite for every epsilon > 0. Mean cost 0: plan 1/K^2, loss 0, converged, in 0
//             iterations. With a tolerance a problem stops after the first iteration that leaves
//             the source marginal's L1 error at or below it (the target's is rounding).
//   exact     the optimal plan pairs the sorted samples, equal ones in index order; 0 iterations.
//
// Loss d = <plan, C> (OtScale::transport) or that over K^2 (paper). With the plan held fixed
// dm^S_i = 2 sum_j plan_ij (m^S_i - m^T_j), and the like for the target. The plan is at hand in the
// forward only, so the gradients are made there. Samples that are not finite give NaN and set the
// fault latch.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/alignment_options.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// Views into the arena, valid until its scope ends.
template <class T>
struct Coupling {
  VectorView<T> loss;              // (Q)        d of each problem, scaled as `scale` says
  View<T, 3> gradient;             // (2, Q, K)  of d with respect to m^S, then to m^T
  VectorView<int32_t> iterations;  // (Q)        used
  VectorView<T> marginal_error;    // (Q)        of the plan: sum_i |sum_j plan_ij - 1/K| and the
                                   //            same for the columns, added
  VectorView<int32_t> converged;   // (Q)        error <= max(tolerance, 1e-3)
};

// `source` and `target` are (Q, K), contiguous rows. `plan` is (Q, K, K), or empty when nobody
// wants to see the plans. Takes the result's memory from context.scratch().
template <class T>
Coupling<T> coupling(Context& context, MatrixView<const T> source, MatrixView<const T> target,
                     const CouplingOptions& options, View<T, 3> plan = {});

// What a device does: fills memory that the op has taken.
CFAA_DEVICE_OP(template <class T>
               void coupling(Context& context, MatrixView<const T> source,
                             MatrixView<const T> target, const CouplingOptions& options,
                             View<T, 3> plan, const Coupling<T>& result));

}  // namespace cfaa
