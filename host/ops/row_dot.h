#pragma once

// row_dot: scores of pairs, added to what is there:
//
//   score_r += scale <u_r, v_r>
//   backward:  du_r += scale dscore_r v_r,   dv_r += scale dscore_r u_r

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa {

// u, v (R, D), rows may be padded; score (R), contiguous.
template <class T>
void row_dot(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
             VectorView<T> score);

template <class T>
void row_dot_backward(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
                      VectorView<const T> dscore, MatrixView<T> du, MatrixView<T> dv);

// The implementations: host/cpu/row_dot.cpp and kernels/row_dot.cu.
namespace cpu {
template <class T>
void row_dot(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
             VectorView<T> score);
template <class T>
void row_dot_backward(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
                      VectorView<const T> dscore, MatrixView<T> du, MatrixView<T> dv);
}  // namespace cpu
namespace cuda {
template <class T>
void row_dot(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
             VectorView<T> score);
template <class T>
void row_dot_backward(Context& context, MatrixView<const T> u, MatrixView<const T> v, double scale,
                      VectorView<const T> dscore, MatrixView<T> du, MatrixView<T> dv);
}  // namespace cuda

}  // namespace cfaa
