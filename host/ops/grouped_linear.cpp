#include "host/ops/grouped_linear.h"

#include "host/core/error.h"
#include "host/ops/dense_rows.h"

namespace cfaa {
namespace {

template <class T>
void check_layers(std::span<const LinearLayer<T>> layers) {
  CFAA_ASSERT(!layers.empty() && layers.size() <= kMaxTowers);
  for (const LinearLayer<T>& layer : layers) {
    const int64_t m = layer.x.rows(), k = layer.x.cols(), n = layer.weight.rows();
    CFAA_ASSERT(m >= 1 && k >= 1 && n >= 1);
    CFAA_ASSERT(layer.weight.cols() == k && layer.bias.size() == n);
    CFAA_ASSERT(layer.y.rows() == m && layer.y.cols() == n);
    CFAA_ASSERT(rows_are_dense(layer.x) && rows_are_dense(layer.weight));
    CFAA_ASSERT(rows_are_dense(layer.y) && layer.bias.contiguous());
  }
}

}  // namespace

template <class T>
void grouped_linear(Context& context, std::span<const LinearLayer<T>> layers, Activation activation,
                    MathMode math) {
  check_layers(layers);

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, grouped_linear<T>)(context, layers, activation, math);
}

template <class T>
void grouped_linear_backward(Context& context, std::span<const LinearLayer<T>> layers,
                             Activation activation, std::span<const LinearGradient<T>> gradients,
                             MathMode math) {
  check_layers(layers);
  CFAA_ASSERT(gradients.size() == layers.size());
  for (std::size_t g = 0; g < layers.size(); ++g) {
    const LinearLayer<T>& layer = layers[g];
    const LinearGradient<T>& gradient = gradients[g];
    CFAA_ASSERT(gradient.y.shape == layer.y.shape && rows_are_dense(gradient.y));
    CFAA_ASSERT(gradient.weight.shape == layer.weight.shape && rows_are_dense(gradient.weight));
    CFAA_ASSERT(gradient.bias.shape == layer.bias.shape && gradient.bias.contiguous());
    if (gradient.x.data == nullptr) continue;
    CFAA_ASSERT(gradient.x.rows() == layer.x.rows() && rows_are_dense(gradient.x));
    CFAA_ASSERT(gradient.x.cols() >= 1 && gradient.x.cols() <= layer.x.cols());
  }

  const Arena::Scope scope(context.scratch());
  CFAA_DISPATCH(context, grouped_linear_backward<T>)(context, layers, activation, gradients, math);
}

CFAA_FOR_FLOAT_AND_DOUBLE(grouped_linear);
CFAA_FOR_FLOAT_AND_DOUBLE(grouped_linear_backward);

}  // namespace cfaa
