#pragma once

// dropout, in place:  x_e = keep_e ? x_e / (1 - p) : 0,  keep_e = uniform_e >= p,  e = r C + c
//
// uniform_e has the upper 24 bits of word e mod 4 of Philox(seed) at index e / 4 and the stream
// (step << 16) + layer, step being StepState's: identical on every device, and the backward draws
// them again instead of keeping a mask. Called on the activations in the forward and on their
// gradient in the backward.

#include <cmath>

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"
#include "host/ops/step_state.h"

namespace cfaa {

// x (R, C), rows may be padded; 0 <= p < 1; `layer` < 65536 names the use. p == 0 does nothing.
// `state` is in device memory.
CFAA_OP(template <class T>
        void dropout(Context& context, double p, const StepState* state, uint64_t layer,
                     MatrixView<T> x));

// uniform >= p in terms of the 24 bits themselves, so that no device rounds.
inline uint32_t dropout_threshold(double p) {
  return static_cast<uint32_t>(std::ceil(p * 16777216.0));
}

}  // namespace cfaa
