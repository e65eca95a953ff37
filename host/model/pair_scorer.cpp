#include "host/model/pair_scorer.h"

#include <fmt/format.h>

#include "host/core/columns.h"
#include "host/core/error.h"
#include "host/core/tensor.h"
#include "host/ops/add_scaled.h"
#include "host/ops/dropout.h"
#include "host/ops/factorization_machine.h"
#include "host/ops/gated_product.h"
#include "host/ops/grouped_linear.h"
#include "host/ops/relu.h"
#include "host/ops/row_dot.h"

namespace cfaa {
namespace {

// Names dropout's random numbers here, apart from the towers' (host/model/towers.cpp).
constexpr uint64_t kScorerDropout = 60000;

template <class T>
MatrixView<T> half(MatrixView<T> z, std::size_t side) {
  const int64_t d = z.cols() / 2;
  return columns(z, static_cast<int64_t>(side) * d, d);
}

template <class T>
MatrixView<T> column(VectorView<T> vector) {
  return {vector.data, {vector.size(), 1}};
}

template <class T, int Rank>
void fill_zero(Context& context, View<T, Rank> view) {
  context.runtime().fill_zero(view.data, static_cast<std::size_t>(view.size()) * sizeof(T));
}

// A copy in the arena of a view whose rows may be padded.
template <class T>
MatrixView<T> copy_of(Context& context, MatrixView<T> from) {
  const MatrixView<T> to = context.scratch().template take<T, 2>(from.shape);
  fill_zero(context, to);
  add_scaled<T>(context, nullptr, from, to);
  return to;
}

template <class T>
class MlpAndDot final : public PairScorer<T> {
 public:
  MlpAndDot(const ModelOptions& options, Parameters<T>& parameters)
      : options_(options), parameters_(parameters) {
    if (!options.mlp()) return;
    if (options.scorer_layers.empty()) {
      throw Error("model.scorer_layers is empty; an MLP scorer needs a hidden layer, e.g. [64]");
    }
    int64_t width = 2 * options.z_columns();
    for (std::size_t l = 0; l <= options.scorer_layers.size(); ++l) {
      const int64_t out = l < options.scorer_layers.size() ? options.scorer_layers[l] : 1;
      weight_.push_back(parameters.add_layer(fmt::format("scorer.layer{}.weight", l), out, width));
      bias_.push_back(parameters.add_layer(fmt::format("scorer.layer{}.bias", l), 1, out));
      width = out;
    }
  }

  // Kept: what the first layer read, and the hidden layers.
  std::vector<MatrixView<T>> forward(Context& context, MatrixView<T> z, VectorView<T> score,
                                     const StepState* state, MathMode math) const override {
    std::vector<MatrixView<T>> kept = {z};
    if (drops(state)) {
      kept[0] = copy_of(context, z);
      dropout<T>(context, options_.scorer_dropout, state, kScorerDropout, kept[0]);
    }
    for (std::size_t l = 0; l < weight_.size(); ++l) {
      const bool last = l + 1 == weight_.size();
      const MatrixView<T> y =
          last ? column(score)
               : context.scratch().template take<T, 2>({z.rows(), options_.scorer_layers[l]});
      const LinearLayer<T> layer{kept[l], parameters_.weight(weight_[l]),
                                 parameters_.bias(bias_[l]), y};
      grouped_linear<T>(context, std::span(&layer, 1), last ? Activation::none : Activation::relu,
                        math);
      if (!last) kept.push_back(y);
    }
    if (options_.dot()) {
      if (!options_.mlp()) fill_zero(context, score);
      row_dot<T>(context, half(z, kUser), half(z, kItem), 1, score);
    }
    return kept;
  }

  void backward(Context& context, MatrixView<T> z, const std::vector<MatrixView<T>>& kept,
                VectorView<T> score, VectorView<T> dscore, MatrixView<T> dz, const StepState* state,
                MathMode math) const override {
    MatrixView<T> dy = column(dscore);
    for (std::size_t l = weight_.size(); l > 0; --l) {
      const std::size_t i = l - 1;
      const bool last = l == weight_.size();
      const MatrixView<T> x = kept[i];
      const MatrixView<T> y = last ? column(score) : kept[i + 1];
      const MatrixView<T> dx = i == 0 ? dz : context.scratch().template take<T, 2>(x.shape);
      const LinearLayer<T> layer{x, parameters_.weight(weight_[i]), parameters_.bias(bias_[i]), y};
      const LinearGradient<T> gradient{dy, dx, parameters_.gradient(weight_[i]),
                                       parameters_.bias_gradient(bias_[i])};
      grouped_linear_backward<T>(context, std::span(&layer, 1),
                                 last ? Activation::none : Activation::relu,
                                 std::span(&gradient, 1), math);
      dy = dx;
    }
    if (!options_.mlp()) fill_zero(context, dz);
    if (drops(state)) dropout<T>(context, options_.scorer_dropout, state, kScorerDropout, dz);
    if (options_.dot()) {
      row_dot_backward<T>(context, half(z, kUser), half(z, kItem), 1, dscore, half(dz, kUser),
                          half(dz, kItem));
    }
  }

 private:
  bool drops(const StepState* state) const {
    return options_.mlp() && options_.scorer_dropout > 0 && state != nullptr;
  }

  const ModelOptions& options_;
  Parameters<T>& parameters_;
  using PairScorer<T>::weight_, PairScorer<T>::bias_;
};

// Two columns at the end of ranking rows: what a user has alone counts once, and so does an item's.
//
//   user  (..., own, 1),   item  (..., 1, own)
//
// `own` is a column of z times 1, or 0, plus a bias.
template <class T>
class OwnParts {
 public:
  OwnParts(Context& context)
      : zero_(context, {1, 1}, std::vector<T>{0}.data()),
        one_(context, {1, 1}, std::vector<T>{1}.data()) {}

  MatrixView<const T> zero() const { return zero_.view(); }
  MatrixView<const T> one() const { return one_.view(); }

  // x, out (R, 1):  out = factor x + bias
  static void write(Context& context, MatrixView<const T> x, MatrixView<const T> factor,
                    VectorView<const T> bias, MatrixView<T> out) {
    const LinearLayer<T> layer{x, factor, bias, out};
    grouped_linear<T>(context, std::span(&layer, 1), Activation::none);
  }
  // The column of ones: any column times 0, plus 1.
  void write_ones(Context& context, std::size_t side, MatrixView<const T> x,
                  MatrixView<T> rows) const {
    write(context, x, zero(), flat(one()), columns(rows, rows.cols() - (side == kUser ? 1 : 2), 1));
  }
  static MatrixView<T> place(std::size_t side, MatrixView<T> rows) {
    return columns(rows, rows.cols() - (side == kUser ? 2 : 1), 1);
  }
  static VectorView<const T> flat(MatrixView<const T> one) { return {one.data, {one.size()}}; }

 private:
  Tensor<T, 2> zero_, one_;
};

template <class T>
class Machine final : public PairScorer<T> {
 public:
  Machine(Context& context, const ModelOptions& options, Parameters<T>& parameters)
      : options_(options),
        parameters_(parameters),
        own_(context),
        no_bias_(context, {options.factors}) {
    const int64_t width = 2 * options.z_columns();
    weight_ = {parameters.add_layer("scorer.factors.weight", options.factors, width),
               parameters.add_layer("scorer.linear.weight", 1, width)};
    bias_ = {parameters.add_layer("scorer.bias", 1, 1)};
    no_bias_.fill_zero();
  }

  // Kept: max(0, z).
  std::vector<MatrixView<T>> forward(Context& context, MatrixView<T> z, VectorView<T> score,
                                     const StepState* state, MathMode) const override {
    const MatrixView<T> x = positive(context, z);
    fill_zero(context, score);
    factorization_machine<T>(context, x, machine(), dropped(state), score);
    return {x};
  }

  void backward(Context& context, MatrixView<T>, const std::vector<MatrixView<T>>& kept,
                VectorView<T>, VectorView<T> dscore, MatrixView<T> dz, const StepState* state,
                MathMode) const override {
    const FactorizationMachineGradient<T> gradient{parameters_.gradient(weight_[0]),
                                                   parameters_.bias_gradient(weight_[1]),
                                                   parameters_.bias_gradient(bias_[0])};
    factorization_machine_backward<T>(context, kept[0], machine(), dropped(state), dscore, dz,
                                      gradient);
    relu_backward<T>(context, kept[0], dz);
  }

  // A side's sums of factors, and the machine on that side alone.
  int64_t ranking_columns() const override { return options_.factors + 2; }
  void ranking_rows(Context& context, std::size_t side, MatrixView<T> z,
                    MatrixView<T> rows) const override {
    const Arena::Scope scope(context.scratch());
    const MatrixView<T> x = positive(context, z);
    const FactorizationMachine<T> whole = machine();
    const int64_t first = static_cast<int64_t>(side) * z.cols();
    const FactorizationMachine<T> alone{
        columns(whole.factors, first, z.cols()),
        {whole.linear.data + first, {z.cols()}},
        side == kUser ? whole.bias : OwnParts<T>::flat(own_.zero())};
    const LinearLayer<T> sums{x, alone.factors, no_bias_.view(),
                              columns(rows, 0, options_.factors)};
    grouped_linear<T>(context, std::span(&sums, 1), Activation::none);
    const VectorView<T> score = context.scratch().template take<T, 1>({z.rows()});
    fill_zero(context, score);
    factorization_machine<T>(context, x, alone, {}, score);
    OwnParts<T>::write(context, column(score), own_.one(), OwnParts<T>::flat(own_.zero()),
                       OwnParts<T>::place(side, rows));
    own_.write_ones(context, side, column(score), rows);
  }

 private:
  FactorizationMachine<T> machine() const {
    return {parameters_.weight(weight_[0]), parameters_.bias(weight_[1]),
            parameters_.bias(bias_[0])};
  }
  Dropout dropped(const StepState* state) const {
    return {options_.scorer_dropout, state, kScorerDropout};
  }
  static MatrixView<T> positive(Context& context, MatrixView<T> z) {
    const MatrixView<T> x = copy_of(context, z);
    relu<T>(context, x);
    return x;
  }

  const ModelOptions& options_;
  Parameters<T>& parameters_;
  OwnParts<T> own_;
  Tensor<T, 1> no_bias_;  // (factors) zeros
  using PairScorer<T>::weight_, PairScorer<T>::bias_;
};

template <class T>
class GatedProduct final : public PairScorer<T> {
 public:
  GatedProduct(Context& context, const ModelOptions& options, Parameters<T>& parameters)
      : options_(options), parameters_(parameters), own_(context) {
    weight_ = {parameters.add_layer("scorer.product.weight", 1, options.dim)};
    bias_ = {parameters.add_layer("scorer.bias", 1, 1)};
  }

  std::vector<MatrixView<T>> forward(Context& context, MatrixView<T> z, VectorView<T> score,
                                     const StepState* state, MathMode) const override {
    fill_zero(context, score);
    gated_product<T>(context, product(half(z, kUser)), product(half(z, kItem)), weight(),
                     parameters_.bias(bias_[0]), dropped(state), score);
    for (const std::size_t side : {kUser, kItem}) {
      add_scaled<T>(context, nullptr, bias(half(z, side)), column(score));
    }
    return {};
  }

  void backward(Context& context, MatrixView<T> z, const std::vector<MatrixView<T>>&, VectorView<T>,
                VectorView<T> dscore, MatrixView<T> dz, const StepState* state,
                MathMode) const override {
    fill_zero(context, dz);
    gated_product_backward<T>(context, product(half(z, kUser)), product(half(z, kItem)), weight(),
                              dropped(state), dscore, product(half(dz, kUser)),
                              product(half(dz, kItem)), parameters_.bias_gradient(weight_[0]),
                              parameters_.bias_gradient(bias_[0]));
    for (const std::size_t side : {kUser, kItem}) {
      add_scaled<T>(context, nullptr, column(dscore), bias(half(dz, side)));
    }
  }

  // max(0, x y) = x+ y+ + x- y-, and the biases.
  int64_t ranking_columns() const override { return 2 * options_.dim + 2; }
  void ranking_rows(Context& context, std::size_t side, MatrixView<T> z,
                    MatrixView<T> rows) const override {
    gated_product_rows<T>(context, product(z), side == kUser ? weight() : VectorView<const T>{},
                          columns(rows, 0, 2 * options_.dim));
    const VectorView<const T> both = parameters_.bias(bias_[0]);
    OwnParts<T>::write(context, bias(z), own_.one(),
                       side == kUser ? both : OwnParts<T>::flat(own_.zero()),
                       OwnParts<T>::place(side, rows));
    own_.write_ones(context, side, bias(z), rows);
  }

 private:
  MatrixView<T> product(MatrixView<T> z) const { return columns(z, 0, options_.dim); }
  MatrixView<T> bias(MatrixView<T> z) const { return columns(z, options_.dim, 1); }
  VectorView<const T> weight() const { return parameters_.bias(weight_[0]); }
  Dropout dropped(const StepState* state) const {
    return {options_.scorer_dropout, state, kScorerDropout};
  }

  const ModelOptions& options_;
  Parameters<T>& parameters_;
  OwnParts<T> own_;
  using PairScorer<T>::weight_, PairScorer<T>::bias_;
};

}  // namespace

template <class T>
std::unique_ptr<PairScorer<T>> make_pair_scorer(Context& context, const ModelOptions& options,
                                                Parameters<T>& parameters) {
  if (options.scorer == ScorerKind::fm) {
    return std::make_unique<Machine<T>>(context, options, parameters);
  }
  if (options.scorer == ScorerKind::gated_product) {
    return std::make_unique<GatedProduct<T>>(context, options, parameters);
  }
  return std::make_unique<MlpAndDot<T>>(options, parameters);
}

template std::unique_ptr<PairScorer<float>> make_pair_scorer<float>(Context&, const ModelOptions&,
                                                                    Parameters<float>&);
template std::unique_ptr<PairScorer<double>> make_pair_scorer<double>(Context&, const ModelOptions&,
                                                                      Parameters<double>&);

}  // namespace cfaa
