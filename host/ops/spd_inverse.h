#pragma once

// spd_inverse: A becomes A^-1, for A symmetric positive definite, in place. For closed forms over
// all items, outside of a training step: it waits for the device.

#include <cstdint>

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa {

// a (n, n), contiguous: the lower triangle is read, both are written. Returns 0, or the order of
// the leading minor that is not positive (NaN ends there too); `a` is then of no use. The same bits
// for every number of threads.
template <class T>
int64_t spd_inverse(Context& context, MatrixView<T> a);

// The implementations: host/cpu/spd_inverse.cpp and kernels/spd_inverse.cu.
namespace cpu {
template <class T>
int64_t spd_inverse(Context& context, MatrixView<T> a);
}  // namespace cpu
namespace cuda {
template <class T>
int64_t spd_inverse(Context& context, MatrixView<T> a);
}  // namespace cuda

}  // namespace cfaa
