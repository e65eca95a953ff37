#pragma once

// One linear layer of several towers in one launch:
//
//   Y_g = X_g W_g' + b_g,  or relu of that;   g = 0 .. G-1, G <= kMaxTowers
//
// The towers may differ in every extent. Backward, with P_g = dY_g where Y_g > 0 and 0 elsewhere
// (relu), or dY_g itself (none):
//
//   dX_g = P_g W_g,   dW_g += P_g' X_g,   db_g += sum of P_g's rows

// `math` may round the factors of all three. Tensor cores write whole 16 bytes: where the columns
// of an output (N, and K' of dX) are no multiple of 4 in every tower, that product is in fp32.

#include <algorithm>
#include <span>

#include "host/core/context.h"
#include "host/core/math_mode.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

inline constexpr int kMaxTowers = 4;

enum class Activation { none, relu };

// Of one tower. The columns of every row are adjacent; rows may be padded.
template <class T>
struct LinearLayer {
  MatrixView<const T> x;       // (M, K)
  MatrixView<const T> weight;  // (N, K)
  VectorView<const T> bias;    // (N)     contiguous
  MatrixView<T> y;             // (M, N)  written by the forward, read by the backward
};

template <class T>
struct LinearGradient {
  MatrixView<const T> y;  // (M, N)  what comes from above
  MatrixView<T> x;        // (M, K') written: the first K' <= K columns; data null: nobody wants it
  MatrixView<T> weight;   // (N, K)  added to
  VectorView<T> bias;     // (N)     added to; contiguous
};

template <class T>
bool has_whole_outputs(std::span<const LinearLayer<T>> layers) {
  return std::all_of(layers.begin(), layers.end(),
                     [](const LinearLayer<T>& layer) { return layer.weight.rows() % 4 == 0; });
}
template <class T>
bool has_whole_inputs(std::span<const LinearGradient<T>> gradients) {
  return std::all_of(gradients.begin(), gradients.end(), [](const LinearGradient<T>& gradient) {
    return gradient.x.data == nullptr || gradient.x.cols() % 4 == 0;
  });
}

// No two towers may share an output.
CFAA_OP(template <class T>
        void grouped_linear(Context& context, std::span<const LinearLayer<T>> layers,
                            Activation activation, MathMode math = MathMode::fp32));

CFAA_OP(template <class T>
        void grouped_linear_backward(Context& context, std::span<const LinearLayer<T>> layers,
                                     Activation activation,
                                     std::span<const LinearGradient<T>> gradients,
                                     MathMode math = MathMode::fp32));

}  // namespace cfaa
