#pragma once

// SLIM's penalty on the GPU: the square root of A = BB' + delta I and its inverse.

#include "host/core/context.h"
#include "host/core/view.h"
#include "host/ops/alignment_options.h"

namespace cfaa::cuda {

// Whether its steps on this device are in float: where double is slow, and T is float.
template <class T>
bool has_float_steps(Context& context);

// From bb = BB' (S, D, D), which is destroyed: `roots` (S, D), whose rows sum to Tr(A^(1/2)), and,
// unless its data is null, xi (S, D, D) = 2 A^(-1/2). What fails is latched.
void slim_penalty(Context& context, const SlimOptions& options, View<double, 3> bb,
                  MatrixView<double> roots, View<double, 3> xi, bool float_steps);

}  // namespace cfaa::cuda
