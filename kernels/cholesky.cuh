#pragma once

// The inverse factor of symmetric positive definite matrices, by cuSOLVER or by products and a
// kernel of our own, which a CUDA graph can hold.

#include "host/core/context.h"
#include "host/core/fault.h"
#include "host/core/view.h"
#include "host/ops/alignment_options.h"

namespace cfaa::cuda {

// a[s] (n, n) symmetric positive definite, both triangles given, = C C' with C lower triangular.
// inverse_factor[s] (n, n) = C^-1 with zeros above the diagonal. a is left with C' and zeros below
// the diagonal. Both contiguous, of any n. A matrix that is not positive definite is latched with
// its leading minor.
template <class T>
void blocked_cholesky(Context& context, View<T, 3> a, View<T, 3> inverse_factor, FaultSite site);

// inverse_factor as above, by either way; what `a` holds afterwards depends on it.
template <class T>
void inverse_cholesky(Context& context, Solver solver, View<T, 3> a, View<T, 3> inverse_factor,
                      FaultSite site);

}  // namespace cfaa::cuda
