#include "host/ops/grouped_linear.h"

#include <algorithm>
#include <type_traits>

#include "host/cpu/blas.h"

namespace cfaa::cpu {
namespace {

// Rows of one product that a thread takes at a time: enough for OpenBLAS to run at speed, few
// enough that four towers keep many threads busy.
constexpr int64_t kBlockRows = 64;

// Calls body(g, begin, end) for blocks of rows of each problem; rows(g) says how many it has.
template <class Rows, class Body>
void for_each_row_block(Context& context, std::size_t problems, Rows rows, Body body) {
  int64_t most = 0;
  for (std::size_t g = 0; g < problems; ++g) most = std::max(most, rows(g));
  const int64_t blocks = (most + kBlockRows - 1) / kBlockRows;
  context.threads().parallel_for(static_cast<int64_t>(problems) * blocks, 1,
                                 [&](int64_t begin, int64_t end, int) {
                                   for (int64_t i = begin; i < end; ++i) {
                                     const std::size_t g = static_cast<std::size_t>(i / blocks);
                                     const int64_t first = i % blocks * kBlockRows;
                                     const int64_t last = std::min(first + kBlockRows, rows(g));
                                     if (first < last) body(g, first, last);
                                   }
                                 });
}

// A factor as tensor cores would see it, in scratch where that is not what it is.
template <class T>
MatrixView<const T> factor(Context& context, MatrixView<const T> matrix, MathMode math) {
  if (math == MathMode::fp32 || std::is_same_v<T, double>) return matrix;
  const MatrixView<T> copy = context.scratch().template take<T, 2>(matrix.shape);
  context.threads().parallel_for(matrix.rows(), 32, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = matrix.data + r * matrix.stride[0];
      T* to = copy.data + r * copy.stride[0];
      for (int64_t c = 0; c < matrix.cols(); ++c) to[c] = rounded(from[c], math);
    }
  });
  return copy;
}

template <class T>
struct Factors {
  MatrixView<const T> x[kMaxTowers], weight[kMaxTowers];
};

template <class T>
Factors<T> factors(Context& context, std::span<const LinearLayer<T>> layers, MathMode math) {
  Factors<T> found;
  for (std::size_t g = 0; g < layers.size(); ++g) {
    found.x[g] = factor(context, layers[g].x, math);
    found.weight[g] = factor(context, layers[g].weight, math);
  }
  return found;
}

}  // namespace

template <class T>
void grouped_linear(Context& context, std::span<const LinearLayer<T>> layers, Activation activation,
                    MathMode math) {
  use_one_blas_thread();
  const Factors<T> of = factors(context, layers, has_whole_outputs(layers) ? math : MathMode::fp32);
  const auto rows = [&](std::size_t g) { return layers[g].x.rows(); };
  for_each_row_block(context, layers.size(), rows, [&](std::size_t g, int64_t first, int64_t last) {
    const LinearLayer<T>& layer = layers[g];
    const int64_t n = layer.weight.rows(), k = layer.x.cols();
    for (int64_t i = first; i < last; ++i) {
      std::copy_n(layer.bias.data, n, layer.y.data + i * layer.y.stride[0]);
    }
    const MatrixView<const T> x = of.x[g], weight = of.weight[g];
    gemm(Transpose::no, Transpose::yes, last - first, n, k, T(1), x.data + first * x.stride[0],
         x.stride[0], weight.data, weight.stride[0], T(1), layer.y.data + first * layer.y.stride[0],
         layer.y.stride[0]);
    if (activation == Activation::none) return;
    for (int64_t i = first; i < last; ++i) {
      T* y = layer.y.data + i * layer.y.stride[0];
      // Written so that NaN stays NaN.
      for (int64_t j = 0; j < n; ++j) y[j] = y[j] < T(0) ? T(0) : y[j];
    }
  });
}

template <class T>
void grouped_linear_backward(Context& context, std::span<const LinearLayer<T>> layers,
                             Activation activation, std::span<const LinearGradient<T>> gradients,
                             MathMode math) {
  use_one_blas_thread();
  const auto rows = [&](std::size_t g) { return layers[g].x.rows(); };
  const auto outputs = [&](std::size_t g) { return layers[g].weight.rows(); };

  MatrixView<const T> masked[kMaxTowers];
  for (std::size_t g = 0; g < layers.size(); ++g) {
    masked[g] = gradients[g].y;
    if (activation == Activation::none) continue;
    masked[g] = context.scratch().template take<T, 2>(layers[g].y.shape);
  }

  // P, by rows
  for_each_row_block(context, layers.size(), rows, [&](std::size_t g, int64_t first, int64_t last) {
    const LinearLayer<T>& layer = layers[g];
    const LinearGradient<T>& gradient = gradients[g];
    if (activation == Activation::none) return;
    for (int64_t i = first; i < last; ++i) {
      const T* y = layer.y.data + i * layer.y.stride[0];
      const T* dy = gradient.y.data + i * gradient.y.stride[0];
      T* to = const_cast<T*>(masked[g].data) + i * masked[g].stride[0];
      for (int64_t j = 0; j < layer.weight.rows(); ++j) to[j] = y[j] > T(0) ? dy[j] : T(0);
    }
  });

  const MathMode rounds = has_whole_outputs(layers) ? math : MathMode::fp32;
  const MathMode input_rounds = has_whole_inputs(gradients) ? rounds : MathMode::fp32;
  const Factors<T> of = factors(context, layers, rounds);
  MatrixView<const T> p[kMaxTowers];
  for (std::size_t g = 0; g < layers.size(); ++g) p[g] = factor(context, masked[g], rounds);

  // dX, by rows
  for_each_row_block(context, layers.size(), rows, [&](std::size_t g, int64_t first, int64_t last) {
    const LinearGradient<T>& gradient = gradients[g];
    if (gradient.x.data == nullptr) return;
    const bool both = input_rounds == rounds;
    const MatrixView<const T> from = both ? p[g] : masked[g],
                              weight = both ? of.weight[g] : layers[g].weight;
    gemm(Transpose::no, Transpose::no, last - first, gradient.x.cols(), weight.rows(), T(1),
         from.data + first * from.stride[0], from.stride[0], weight.data, weight.stride[0], T(0),
         gradient.x.data + first * gradient.x.stride[0], gradient.x.stride[0]);
  });

  // dW and db, by outputs: each thread adds up its own in the order of the rows
  for_each_row_block(
      context, layers.size(), outputs, [&](std::size_t g, int64_t first, int64_t last) {
        const LinearLayer<T>& layer = layers[g];
        const LinearGradient<T>& gradient = gradients[g];
        const int64_t m = layer.x.rows(), k = layer.x.cols();
        gemm(Transpose::yes, Transpose::no, last - first, k, m, T(1), p[g].data + first,
             p[g].stride[0], of.x[g].data, of.x[g].stride[0], T(1),
             gradient.weight.data + first * gradient.weight.stride[0], gradient.weight.stride[0]);
        for (int64_t i = 0; i < m; ++i) {
          const T* from = masked[g].data + i * masked[g].stride[0];
          for (int64_t j = first; j < last; ++j) gradient.bias.data[j] += from[j];
        }
      });
}

CFAA_FOR_FLOAT_AND_DOUBLE(grouped_linear);
CFAA_FOR_FLOAT_AND_DOUBLE(grouped_linear_backward);

}  // namespace cfaa::cpu
