#pragma once

// review_input: puts the batch's review vectors in their columns of a tower's input; a row whose
// user or item has no review left gets the learned vector `absent` instead:
//
//   out_r = present_r ? review_r : absent
//
// Backward: dabsent += sum of dout_r over the rows that are not present, in row order.

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa {

// review (R, C) and present (R, 0 or 1) in device memory, absent (C), out (R, C); rows may be
// padded.
template <class T>
void review_input(Context& context, MatrixView<const float> review,
                  VectorView<const int32_t> present, VectorView<const T> absent, MatrixView<T> out);

template <class T>
void review_input_backward(Context& context, MatrixView<const T> dout,
                           VectorView<const int32_t> present, VectorView<T> dabsent);

// The implementations: host/cpu/review_input.cpp and kernels/review_input.cu.
namespace cpu {
template <class T>
void review_input(Context& context, MatrixView<const float> review,
                  VectorView<const int32_t> present, VectorView<const T> absent, MatrixView<T> out);
template <class T>
void review_input_backward(Context& context, MatrixView<const T> dout,
                           VectorView<const int32_t> present, VectorView<T> dabsent);
}  // namespace cpu

namespace cuda {
template <class T>
void review_input(Context& context, MatrixView<const float> review,
                  VectorView<const int32_t> present, VectorView<const T> absent, MatrixView<T> out);
template <class T>
void review_input_backward(Context& context, MatrixView<const T> dout,
                           VectorView<const int32_t> present, VectorView<T> dabsent);
}  // namespace cuda

}  // namespace cfaa
