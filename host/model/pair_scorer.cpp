#include "host/model/pair_scorer.h"

#include <fmt/format.h>

#include "host/core/error.h"
#include "host/ops/grouped_linear.h"
#include "host/ops/row_dot.h"

namespace cfaa {
namespace {

template <class T>
MatrixView<T> half(MatrixView<T> z, std::size_t side) {
  const int64_t d = z.cols() / 2;
  return {z.data + static_cast<int64_t>(side) * d, {z.rows(), d}, z.stride};
}

template <class T>
MatrixView<T> column(VectorView<T> vector) {
  return {vector.data, {vector.size(), 1}};
}

}  // namespace

template <class T>
PairScorer<T>::PairScorer(const ModelOptions& options, Parameters<T>& parameters)
    : options_(options), parameters_(parameters) {
  if (!options.mlp()) return;
  if (options.scorer_layers.empty()) {
    throw Error("model.scorer_layers is empty; an MLP scorer needs a hidden layer, e.g. [64]");
  }
  int64_t width = 2 * options.dim;
  for (std::size_t l = 0; l <= options.scorer_layers.size(); ++l) {
    const int64_t out = l < options.scorer_layers.size() ? options.scorer_layers[l] : 1;
    weight_.push_back(parameters.add_layer(fmt::format("scorer.layer{}.weight", l), out, width));
    bias_.push_back(parameters.add_layer(fmt::format("scorer.layer{}.bias", l), 1, out));
    width = out;
  }
}

template <class T>
std::vector<MatrixView<T>> PairScorer<T>::forward(Context& context, MatrixView<T> z,
                                                  VectorView<T> score, MathMode math) const {
  std::vector<MatrixView<T>> hidden;
  MatrixView<T> x = z;
  for (std::size_t l = 0; l < weight_.size(); ++l) {
    const bool last = l + 1 == weight_.size();
    const MatrixView<T> y =
        last ? column(score)
             : context.scratch().template take<T, 2>({z.rows(), options_.scorer_layers[l]});
    const LinearLayer<T> layer{x, parameters_.weight(weight_[l]), parameters_.bias(bias_[l]), y};
    grouped_linear<T>(context, std::span(&layer, 1), last ? Activation::none : Activation::relu,
                      math);
    if (!last) hidden.push_back(y);
    x = y;
  }
  if (options_.dot()) {
    if (!options_.mlp()) {
      context.runtime().fill_zero(score.data, static_cast<std::size_t>(score.size()) * sizeof(T));
    }
    row_dot<T>(context, half(z, kUser), half(z, kItem), 1, score);
  }
  return hidden;
}

template <class T>
void PairScorer<T>::backward(Context& context, MatrixView<T> z,
                             const std::vector<MatrixView<T>>& hidden, VectorView<T> score,
                             VectorView<T> dscore, MatrixView<T> dz, MathMode math) const {
  MatrixView<T> dy = column(dscore);
  for (std::size_t l = weight_.size(); l > 0; --l) {
    const std::size_t i = l - 1;
    const bool last = l == weight_.size();
    const MatrixView<T> x = i == 0 ? z : hidden[i - 1];
    const MatrixView<T> y = last ? column(score) : hidden[i];
    const MatrixView<T> dx = i == 0 ? dz : context.scratch().template take<T, 2>(x.shape);
    const LinearLayer<T> layer{x, parameters_.weight(weight_[i]), parameters_.bias(bias_[i]), y};
    const LinearGradient<T> gradient{dy, dx, parameters_.gradient(weight_[i]),
                                     parameters_.bias_gradient(bias_[i])};
    grouped_linear_backward<T>(context, std::span(&layer, 1),
                               last ? Activation::none : Activation::relu, std::span(&gradient, 1),
                               math);
    dy = dx;
  }
  if (!options_.mlp()) {
    context.runtime().fill_zero(dz.data, static_cast<std::size_t>(dz.size()) * sizeof(T));
  }
  if (options_.dot()) {
    row_dot_backward<T>(context, half(z, kUser), half(z, kItem), 1, dscore, half(dz, kUser),
                        half(dz, kItem));
  }
}

template class PairScorer<float>;
template class PairScorer<double>;

}  // namespace cfaa
