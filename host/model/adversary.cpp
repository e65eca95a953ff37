#include "host/model/adversary.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/core/columns.h"
#include "host/ops/add_scaled.h"
#include "host/ops/grouped_linear.h"
#include "host/ops/score_loss.h"

namespace cfaa {
namespace {

template <class T>
VectorView<T> of_domain(VectorView<T> both, std::size_t domain) {
  const int64_t n = both.size() / 2;
  return {both.data + static_cast<int64_t>(domain) * n, {n}};
}

template <class T>
MatrixView<T> column(VectorView<T> vector) {
  return {vector.data, {vector.size(), 1}};
}

// Users and items of a domain lie side by side.
template <class T>
MatrixView<T> side_by_side(const PerSide<MatrixView<T>>& z) {
  return {z[kUser].data, {z[kUser].rows(), z[kUser].cols() + z[kItem].cols()}, z[kUser].stride};
}

}  // namespace

template <class T>
Adversary<T>::Adversary(Context& context, const AdversaryOptions& options, int64_t dim, int64_t n,
                        Parameters<T>& parameters)
    : Loss<T>("adversary", LossRows::interactions),
      options_(options),
      parameters_(parameters),
      group_(parameters.add_group()) {
  const bool pair = options.input == AdversaryInput::pair;
  for (const char* input : {"user", "item"}) {
    const std::string name = fmt::format("adversary.{}", pair ? "pair" : input);
    Discriminator& own = discriminators_.emplace_back();
    int64_t width = pair ? 2 * dim : dim;
    for (std::size_t l = 0; l <= options.layers.size(); ++l) {
      const int64_t out = l < options.layers.size() ? options.layers[l] : 1;
      own.weight.push_back(
          parameters.add_layer(fmt::format("{}.layer{}.weight", name, l), out, width, group_));
      own.bias.push_back(
          parameters.add_layer(fmt::format("{}.layer{}.bias", name, l), 1, out, group_));
      width = out;
    }
    if (pair) break;
  }
  std::vector<T> source(static_cast<std::size_t>(2 * n)), target(source);
  std::fill_n(source.begin(), n, T(1));
  std::fill_n(target.begin() + n, n, T(1));
  const std::vector<T> weight(source.size(), T(1) / static_cast<T>(2 * n));
  const double minus_one = -1;
  label_ = Tensor<T, 1>(context, {2 * n}, source.data());
  other_label_ = Tensor<T, 1>(context, {2 * n}, target.data());
  weight_ = Tensor<T, 1>(context, {2 * n}, weight.data());
  minus_one_ = Tensor<double, 1>(context, {1}, &minus_one);
}

template <class T>
std::vector<std::vector<int>> Adversary<T>::layers() const {
  std::vector<std::vector<int>> weights;
  for (const Discriminator& own : discriminators_) weights.push_back(own.weight);
  return weights;
}

template <class T>
typename Adversary<T>::Run Adversary<T>::forward(Context& context,
                                                 const Discriminator& discriminator,
                                                 const PerDomain<MatrixView<T>>& x,
                                                 MathMode math) const {
  Run run{x, {}, context.scratch().template take<T, 1>(label_.shape())};
  PerDomain<MatrixView<T>> input = x;
  for (std::size_t l = 0; l < discriminator.weight.size(); ++l) {
    const bool last = l + 1 == discriminator.weight.size();
    std::vector<LinearLayer<T>> layers;
    for (std::size_t d = 0; d < 2; ++d) {
      const MatrixView<T> y =
          last ? column(of_domain(run.logit, d))
               : context.scratch().template take<T, 2>({x[d].rows(), options_.layers[l]});
      layers.push_back({input[d], parameters_.weight(discriminator.weight[l]),
                        parameters_.bias(discriminator.bias[l]), y});
      if (!last) run.hidden[d].push_back(y);
      input[d] = y;
    }
    grouped_linear<T>(context, layers, last ? Activation::none : Activation::relu, math);
  }
  return run;
}

template <class T>
MatrixView<T> Adversary<T>::backward(Context& context, const Discriminator& discriminator,
                                     const Run& run, std::size_t domain, VectorView<T> dlogit,
                                     bool train, MathMode math) const {
  Arena& arena = context.scratch();
  MatrixView<T> dy = column(of_domain(dlogit, domain));
  for (std::size_t l = discriminator.weight.size(); l > 0; --l) {
    const std::size_t i = l - 1;
    const bool last = l == discriminator.weight.size();
    const MatrixView<T> x = i == 0 ? run.x[domain] : run.hidden[domain][i - 1];
    const MatrixView<T> y = last ? column(of_domain(run.logit, domain)) : run.hidden[domain][i];
    const MatrixView<T> dx = arena.take<T, 2>(x.shape);
    const int weight = discriminator.weight[i], bias = discriminator.bias[i];
    const LinearLayer<T> layer{x, parameters_.weight(weight), parameters_.bias(bias), y};
    const LinearGradient<T> gradient{
        dy, dx, train ? parameters_.gradient(weight) : arena.take<T, 2>(layer.weight.shape),
        train ? parameters_.bias_gradient(bias) : arena.take<T, 1>(layer.bias.shape)};
    grouped_linear_backward<T>(context, std::span(&layer, 1),
                               last ? Activation::none : Activation::relu, std::span(&gradient, 1),
                               math);
    dy = dx;
  }
  return dy;
}

template <class T>
void Adversary<T>::apply(Context& context, const LossInput<T>& input) {
  const Arena::Scope scope(context.scratch());
  const bool pair = options_.input == AdversaryInput::pair;
  const VectorView<T> value = context.scratch().template take<T, 1>({1});
  const VectorView<T> dlogit = context.scratch().template take<T, 1>(label_.shape());
  context.runtime().fill_zero(input.value.data, sizeof(T));
  for (std::size_t i = 0; i < discriminators_.size(); ++i) {
    const Discriminator& own = discriminators_[i];
    PerDomain<MatrixView<T>> x;
    for (std::size_t d = 0; d < 2; ++d) x[d] = pair ? side_by_side(input.z[d]) : input.z[d][i];
    const Run run = forward(context, own, x, input.math);
    cross_entropy<T>(context, run.logit, label_.view(), weight_.view(), value, dlogit);
    add_scaled<T>(context, nullptr, column(value), column(input.value));
    PerDomain<MatrixView<T>> dx;
    for (std::size_t d = 0; d < 2; ++d) {
      dx[d] = backward(context, own, run, d, dlogit, true, input.math);
    }
    const bool confuse = options_.goal == AdversaryGoal::confuse;
    if (confuse) {
      cross_entropy<T>(context, run.logit, other_label_.view(), weight_.view(), value, dlogit);
    }
    for (std::size_t d = 0; d < 2; ++d) {
      if (d == kSource && options_.against == AdversarySide::target) continue;
      if (confuse) dx[d] = backward(context, own, run, d, dlogit, false, input.math);
      const double* sign = confuse ? nullptr : minus_one_.view().data;
      for (std::size_t s = 0; s < 2; ++s) {
        if (!pair && s != i) continue;
        const int64_t width = input.dz[d][s].cols();
        const int64_t first = pair ? static_cast<int64_t>(s) * width : 0;
        add_scaled<T>(context, sign, columns(dx[d], first, width), input.dz[d][s]);
      }
    }
  }
}

template class Adversary<float>;
template class Adversary<double>;

}  // namespace cfaa
