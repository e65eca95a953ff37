#pragma once

// Typical samples (Section 4.2 of the paper): K points that stand for a column of N embeddings, per
// attribute q of each set, found by a soft assignment started at the column's quantiles:
//
//   start   M_j = the value at position p_j = (j + 1/2) N/K - 1/2 of the sorted column, linearly
//           interpolated, p_j clamped to [0, N - 1]
//   repeat  Psi_ij = softmax_j(-(Z_iq - M_jq)^2 / alpha_q)
//           M_jq   = sum_i Psi_ij Z_iq / s_jq,   s_jq = sum_i Psi_ij
//
// alpha_q is `alpha` times the mean of the two domains' biased variances of the attribute
// (AlphaScale::relative), or `alpha` itself (absolute); it is shared by both sets of a pair.
//
// Squares are taken of centred columns in units of their spread, so that they neither vanish nor
// overflow. alpha_q = 0 (both columns constant) gives Psi = 1/K. Where s_j = 0, M_j keeps its value
// and gets no gradient; an s_j too small to be resolved (below about N 2^-100 in float, N 2^-960 in
// double) counts as 0. A column with NaN or infinity gives NaN and sets the fault latch.
//
// The backward holds Psi, alpha_q and the start fixed:  dZ_iq += sum_j Psi_ij dM_jq / s_jq.

#include "host/ops/alignment_options.h"
#include "host/ops/dispatch.h"
#include "host/ops/embedding_pair.h"

namespace cfaa {

// Of P pairs of sets with D attributes. Views into the arena, valid until its scope ends.
// Sets 0 .. P-1 are the pairs' sources, P .. 2P-1 their targets.
template <class T>
struct TypicalSamples {
  View<T, 3> samples;    // (2P, D, K)  M after the last iteration, ascending in K
  View<T, 3> previous;   // (2P, D, K)  M before it, in centred units of `spread`: gives Psi again
  View<T, 3> weight;     // (2P, D, K)  s_j of the last iteration
  MatrixView<T> centre;  // (2P, D)     mean of the column
  MatrixView<T> spread;  // (P, D)      unit in which squares are taken; 0: both columns constant
  MatrixView<T> bandwidth;   // (P, D)      1 / alpha_q in that unit
  MatrixView<T> column_std;  // (2P, D)    biased standard deviation of the column of Z
  MatrixView<T> sample_std;  // (2P, D)    and of the typical samples: their ratio shows a collapse
};

// K of these pairs: `options.k`, or half the smallest N and at least 1.
template <class T>
int64_t typical_sample_count(EmbeddingPairs<T> pairs, const TypicalSamplesOptions& options);

// Takes the result's memory from context.scratch(). Throws Error for shapes and options that make
// no sense. One launch for all attributes of all sets.
template <class T>
TypicalSamples<T> typical_samples(Context& context, EmbeddingPairs<T> pairs,
                                  const TypicalSamplesOptions& options);

// Adds `scale` times the gradient for `samples_gradient` (2P, D, K; contiguous) to `gradients`.
CFAA_OP(template <class T>
        void typical_samples_backward(Context& context, EmbeddingPairs<T> pairs,
                                      const TypicalSamples<T>& forward,
                                      View<const T, 3> samples_gradient, double scale,
                                      GradientPairs<T> gradients));

// What a device does: fills memory that the op has taken.
CFAA_DEVICE_OP(template <class T>
               void typical_samples(Context& context, EmbeddingPairs<T> pairs,
                                    const TypicalSamplesOptions& options,
                                    const TypicalSamples<T>& result));

}  // namespace cfaa
