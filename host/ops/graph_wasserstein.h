#pragma once

// From SLIM's B to the distance between the attribution graphs of two domains.
//
//   A = (|B| + |B'|)/2 + graph_floor off the diagonal,  L = diag(A 1) - A,  J = 11'/D
//   Sigma = (L + J)^-1 = L^+ + J      by Cholesky: no pseudo-inverse; J cancels in the distance
//   Sigma_S = C_S C_S',  Sigma_T = C_T C_T',  R = C_S' C_T = U S V'
//   d_W = Tr Sigma_S + Tr Sigma_T - 2 |R|_*
//
//   dL_S = C_S (U S U') C_S' - Sigma_S^2,  dL_T = C_T (V S V') C_T' - Sigma_T^2
//   U S U' = (RR')^(1/2),  V S V' = R' (RR')^(-1/2) R
//   dA_ij = dL_ii - dL_ij,  dB = sign(B) o (dA + dA')/2
//
// The same without the cancellation, which float could not afford when the domains are close: with
// Q = (RR')^(-1/2) R the polar factor of R, and E = C_T - C_S Q,
//
//   d_W = |E|^2,  dL_S = Sigma_S E (C_S Q)',  dL_T = -C_T E' Sigma_T
//
// The distance's own derivative needs no upstream but a factor, so dB is made with the forward. The
// graph part runs in T, (RR')^(-1/2) in double. A graph that is not connected (graph_floor = 0) or
// a distance that is not finite is latched as a fault (host/core/fault.h).

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/alignment_options.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// Of P pairs. Views into the arena, valid until its scope ends.
template <class T>
struct GraphWasserstein {
  VectorView<T> distance;      // (P)         d_W
  View<double, 3> b_gradient;  // (2P, D, D)  of d_W; the pairs' sources first, then their targets
  View<T, 3> laplacian;        // (2P, D, D)
};

// `b` is (2P, D, D) with zero diagonals, D >= 2. Takes the result's memory from context.scratch().
template <class T>
GraphWasserstein<T> graph_wasserstein(Context& context, View<const double, 3> b, double graph_floor,
                                      Solver solver = Solver::gemm);

// What a device does: fills memory that the op has taken.
CFAA_DEVICE_OP(template <class T>
               void graph_wasserstein(Context& context, View<const double, 3> b,
                                      double graph_floor, Solver solver,
                                      const GraphWasserstein<T>& result));

}  // namespace cfaa
