#pragma once

// Batched factorisations by cuSOLVER and cuBLAS, in row-major terms, on the Context's stream and
// without waiting for it. Workspace comes from the arena. The libraries report trouble in device
// memory (`dev_info`): a small kernel turns the first report into the Context's fault latch, which
// says in words which problem of which step failed (host/core/fault.h).

#include "cuda/device.h"
#include "host/core/fault.h"
#include "host/core/view.h"

namespace cfaa::cuda {

// a[s] (n, n) symmetric positive definite = C C', C lower triangular, overwrites a's lower
// triangle. inverse_factor[s] (n, n) = C^-1, so that a^-1 = inverse_factor' inverse_factor. Both
// contiguous.
template <class T>
void inverse_cholesky_factor(Context& context, View<T, 3> a, View<T, 3> inverse_factor,
                             FaultSite site);

// The lower triangle of a (n, n), contiguous, symmetric positive definite, becomes that of a^-1, by
// potrf and potri. Waits for the device, so it has no place in a step. Returns 0, or the leading
// minor that is not positive.
template <class T>
int inverse_of_lower_triangle(Context& context, MatrixView<T> a);

// Sets the latch for the first problem whose report is not zero, which becomes the fault's detail.
// `reports` (batch) is in device memory.
void latch_reports(Context& context, const int* reports, int64_t batch, FaultCode code,
                   FaultSite site);

enum class Eigenvectors { no, yes };

// values[s] (n), ascending, of a[s] (n, n) symmetric. On return row j of a[s] is the eigenvector of
// values(s, j), or a is destroyed when no eigenvectors are wanted. Both contiguous.
template <class T>
void eigen_symmetric(Context& context, View<T, 3> a, MatrixView<T> values, Eigenvectors wanted,
                     FaultSite site);

}  // namespace cfaa::cuda
