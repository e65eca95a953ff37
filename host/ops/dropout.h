#pragma once

// dropout, in place:  x_rc = keep_rc ? x_rc / (1 - p) : 0,  keep_rc = uniform(r * C + c) >= p
//
// The uniform numbers are those of Philox(seed) with the index r * C + c and the stream
// (step << 16) + layer, step being StepState's: identical on every device, and the backward draws
// them again instead of keeping a mask. Called on the activations in the forward and on their
// gradient in the backward.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/step_state.h"

namespace cfaa {

// x (R, C), rows may be padded; 0 <= p < 1; `layer` < 65536 names the use. p == 0 does nothing.
template <class T>
void dropout(Context& context, double p, const StepState* state, uint64_t layer, MatrixView<T> x);

// The implementations: host/cpu/dropout.cpp and kernels/dropout.cu.
namespace cpu {
template <class T>
void dropout(Context& context, double p, const StepState* state, uint64_t layer, MatrixView<T> x);
}  // namespace cpu
namespace cuda {
template <class T>
void dropout(Context& context, double p, const StepState* state, uint64_t layer, MatrixView<T> x);
}  // namespace cuda

}  // namespace cfaa
