#pragma once

// The polar factor of square matrices by products alone, which a CUDA graph can hold.

#include <cstddef>

#include "host/core/context.h"
#include "host/core/fault.h"
#include "host/core/view.h"

namespace cfaa::cuda {

// x[s] (n, n) = U H, U orthogonal, H symmetric positive definite, becomes U. `least` (S), on the
// device, bounds the singular values from below. `steps` is fixed, so that a graph can hold them: 9
// reach a condition of 4,000 at n = 300 and 12 of 250,000. Where they do not suffice, or x holds
// NaN, FaultCode::not_converged is latched. Contiguous.
//
// With `Steps::in_float` all steps but the last are: x has float's error times its condition then,
// however orthogonal the last one makes U.
enum class Steps { in_double, in_float };
void polar_factor(Context& context, View<double, 3> x, const double* least, std::size_t steps,
                  FaultSite site, Steps arithmetic = Steps::in_double);

}  // namespace cfaa::cuda
