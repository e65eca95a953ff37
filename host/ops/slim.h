#pragma once

// SLIM: each attribute as a sparse linear mix of the others, per set Z (N, D):
//
//   min_B 1/2 |Z - ZB|^2 + nu Tr(B' Phi B),  diag(B) = 0,
//
// alternating with Phi = (BB' + delta I)^(-1/2), from Phi = I. With Xi = Phi + Phi' and
// Theta = (Z'Z + nu Xi)^-1 one round is
//
//   exact   gamma_j = (1 - nu (Theta Xi)_jj) / Theta_jj,  B = I - nu Theta Xi - Theta diag(gamma)
//   paper   B_ij = -Theta_ij / Theta_jj, off the diagonal, as the paper prints it
//
// NuScale::relative takes nu times the mean diagonal of the set's own Z'Z (nu itself for a set of
// zeros, whose B is 0 whatever nu is). The objective
// 1/2 |Z - ZB|^2 + 2 nu Tr((BB' + delta I)^(1/2)) is reported after each round; the exact step
// never raises it.
//
// The Gram matrix and the rounds are in double whatever T is: in float the gradients are off by 3 %
// at the paper's size. The backward holds the last round's Phi (and a relative nu) fixed. With G
// the gradient of B, its diagonal zeroed, and g_j = -sum_i G_ij Theta_ij:
//
//   exact   dTheta = -nu G Xi - G diag(gamma) - nu diag(g / Theta_jj) Xi - diag(g gamma / Theta_jj)
//   paper   dTheta_ij = -G_ij / Theta_jj,  dTheta_jj = sum_i G_ij Theta_ij / Theta_jj^2
//   both    dGram = -Theta dTheta Theta,  dZ += Z (dGram + dGram')
//
// Either step is I - B = Theta W with some W, and dTheta = -H W with H = G + diag(g / Theta_jj), so
// both come to dGram = (Theta H)(I - B)': two products, and neither Xi nor gamma.
//
// A matrix that cannot be factored, or an objective that is not finite, is latched as a fault
// (host/core/fault.h) that names the set; the set's results then mean nothing.

#include <span>

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/alignment_options.h"
#include "host/ops/dispatch.h"

namespace cfaa {

// Of S sets. Views into the arena, valid until its scope ends.
struct Slim {
  View<double, 3> b;         // (S, D, D)  diagonal zero
  View<double, 3> theta;     // (S, D, D)  of the last round, symmetric
  View<double, 3> xi;        // (S, D, D)  of the last round, symmetric; empty while it is 2 I
  MatrixView<double> gamma;  // (S, D)     of the last round; 1 / Theta_jj for the paper's step
  VectorView<double> nu;     // (S)        as used
  // (S, iterations)  NaN after the round a set stopped at, and for the last round unless
  // SlimOptions::last_objective asks for it
  MatrixView<double> objective;
  VectorView<int32_t> rounds;  // (S)        rounds made
};

template <class T>
Slim slim(Context& context, std::span<const MatrixView<const T>> sets, const SlimOptions& options);

// Adds `scale` times the gradient for `b_gradient` (S, D, D; its diagonal is ignored) to
// `gradients`, one per set.
CFAA_OP(template <class T>
        void slim_backward(Context& context, std::span<const MatrixView<const T>> sets,
                           const SlimOptions& options, const Slim& forward,
                           View<const double, 3> b_gradient, double scale,
                           std::span<const MatrixView<T>> gradients));

// What a device does: fills memory that the op has taken.
CFAA_DEVICE_OP(template <class T>
               void slim(Context& context, std::span<const MatrixView<const T>> sets,
                         const SlimOptions& options, const Slim& result));

}  // namespace cfaa
