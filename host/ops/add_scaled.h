#pragma once

// add_scaled:  y += factor[0] * x,  the factor in device memory (a lambda of StepState), so that a
// schedule can change it under a replayed graph. No factor (nullptr) is 1.

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa {

// x, y (R, C); rows may be padded.
template <class T>
void add_scaled(Context& context, const double* factor, MatrixView<const T> x, MatrixView<T> y);

// The implementations: host/cpu/add_scaled.cpp and kernels/add_scaled.cu.
namespace cpu {
template <class T>
void add_scaled(Context& context, const double* factor, MatrixView<const T> x, MatrixView<T> y);
}  // namespace cpu
namespace cuda {
template <class T>
void add_scaled(Context& context, const double* factor, MatrixView<const T> x, MatrixView<T> y);
}  // namespace cuda

}  // namespace cfaa
