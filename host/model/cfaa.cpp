#include "host/model/cfaa.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "host/core/error.h"
#include "host/model/normal_init.h"
#include "host/ops/adam.h"
#include "host/ops/add_scaled.h"
#include "host/ops/score_loss.h"

namespace cfaa {
namespace {

template <class T>
MatrixView<T> as_row(VectorView<T> vector) {
  return {vector.data, {1, vector.size()}};
}

template <class T, int Rank>
void fill_zero(Context& context, View<T, Rank> view) {
  context.runtime().fill_zero(view.data, static_cast<std::size_t>(view.size()) * sizeof(T));
}

// Of all elements, each column's mean taken off.
template <class T>
double deviation(Context& context, MatrixView<T> z) {
  // Rows may be padded: copy whole rows, then look at the columns that are ours.
  std::vector<T> host(static_cast<std::size_t>((z.rows() - 1) * z.stride[0] + z.cols()));
  context.runtime().copy_to_host(host.data(), z.data, host.size() * sizeof(T));
  context.runtime().synchronize();
  double squares = 0;
  for (int64_t c = 0; c < z.cols(); ++c) {
    double sum = 0, square = 0;
    for (int64_t r = 0; r < z.rows(); ++r) {
      const double x = host[static_cast<std::size_t>(r * z.stride[0] + c)];
      sum += x;
      square += x * x;
    }
    squares += square - sum * sum / static_cast<double>(z.rows());
  }
  return std::sqrt(std::max(0.0, squares) / static_cast<double>(z.size()));
}

}  // namespace

const StepMeasures::Loss& StepMeasures::loss(std::string_view name) const {
  const auto found = std::find_if(losses.begin(), losses.end(),
                                  [&](const Loss& loss) { return loss.name == name; });
  CFAA_ASSERT(found != losses.end());
  return *found;
}

double StepMeasures::total() const {
  double sum = score[kSource] + score[kTarget];
  for (const Loss& loss : losses) sum += loss.weight * loss.value;
  return sum;
}

template <class T>
Cfaa<T>::Cfaa(Context& context, const ModelOptions& options, const AlignmentOptions& alignment,
              const ModelShape& shape, const BatchShape& batch_shape)
    : options_(options),
      batch_shape_(batch_shape),
      towers_(context, options_, shape, parameters_),
      scorer_(options_, parameters_),
      score_loss_(context, {2}),
      score_norm_(context, {1}),
      score_(context, {batch_shape.all_rows()}) {
  for (Loss<T>& loss : make_losses<T>(options_.losses, alignment)) {
    terms_.push_back(
        {std::move(loss), Tensor<T, 1>(context, {1}), Tensor<double, 1>(context, {1})});
  }
  CFAA_ASSERT(std::ssize(terms_) == batch_shape.losses);
  parameters_.allocate(context);
}

template <class T>
MatrixView<T> Cfaa<T>::tower_rows(MatrixView<T> z, std::size_t domain, std::size_t side,
                                  int64_t rows) const {
  const int64_t first = domain == kSource ? 0 : batch_shape_.rows(kSource);
  return {z.data + first * z.stride[0] + static_cast<int64_t>(side) * options_.dim,
          {rows, options_.dim},
          z.stride};
}

template <class T>
void Cfaa<T>::run_towers(Context& context, const Batch<T>& batch, const StepState* state,
                         MathMode math, StepArrays<T>& arrays) {
  arrays.z = context.scratch().template take<T, 2>({batch_shape_.all_rows(), 2 * options_.dim});
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t s = 0; s < 2; ++s) {
      arrays.towers.push_back(towers_.prepare(context, d, s, batch.domain[d].side[s],
                                              tower_rows(arrays.z, d, s, batch_shape_.rows(d))));
    }
  }
  if (!towers_.has_layers()) fill_zero(context, arrays.z);
  towers_.forward(context, arrays.towers, state, math);
}

template <class T>
void Cfaa<T>::start_parameters(Context& context, uint64_t seed) {
  uint64_t stream = 1;
  for (typename Parameters<T>::Table& table : parameters_.tables()) {
    fill_normal<T>(context, table.w, options_.table_scale, seed, stream++);
  }
  const auto start_layers = [&](const std::vector<int>& weights) {
    for (std::size_t l = 0; l < weights.size(); ++l) {
      const MatrixView<T> weight = parameters_.weight(weights[l]);
      const bool last = l + 1 == weights.size();
      fill_normal<T>(context, weight,
                     std::sqrt((last ? 1.0 : 2.0) / static_cast<double>(weight.cols())), seed,
                     stream++);
    }
  };
  const std::size_t domains = options_.towers == TowerSharing::shared ? 1 : 2;
  for (std::size_t d = 0; d < domains; ++d) {
    for (std::size_t s = 0; s < 2; ++s) start_layers(towers_.weights(d, s));
  }
  start_layers(scorer_.weights());
}

template <class T>
void Cfaa<T>::initialize(Context& context, const Batch<T>& batch, uint64_t seed) {
  start_parameters(context, seed);
  const Arena::Scope scope(context.scratch());
  StepArrays<T> first;
  run_towers(context, batch, nullptr, MathMode::fp32, first);
  const bool shared = options_.towers == TowerSharing::shared;
  for (const TowerRun<T>& run : first.towers) {
    if ((run.domain == kTarget && shared) || !towers_.has_layers()) continue;
    const double found = deviation(context, run.z);
    if (!(found > 0)) continue;
    const MatrixView<T> weight = parameters_.weight(towers_.last_layer(run.domain, run.side));
    std::vector<T> values = to_host(context, weight);
    for (T& value : values) value = static_cast<T>(value * (options_.output_scale / found));
    context.runtime().copy_from_host(weight.data, values.data(), values.size() * sizeof(T));
    context.runtime().synchronize();
  }
  if (options_.towers != TowerSharing::tied_start) return;
  for (std::size_t s = 0; s < 2; ++s) {
    const std::vector<int>&from = towers_.weights(kSource, s), &to = towers_.weights(kTarget, s);
    for (std::size_t l = 0; l < from.size(); ++l) {
      const MatrixView<T> weight = parameters_.weight(to[l]);
      context.runtime().copy(weight.data, parameters_.weight(from[l]).data,
                             static_cast<std::size_t>(weight.size()) * sizeof(T));
    }
  }
}

// Scores, L_C of each domain, and its gradients with respect to the scores and Z.
template <class T>
void Cfaa<T>::run_scorer(Context& context, const Batch<T>& batch, ScoreLoss loss, MathMode math,
                         StepArrays<T>& arrays) {
  arrays.score = score_;
  arrays.score_loss = score_loss_;
  arrays.dscore = context.scratch().template take<T, 1>(score_.shape());
  const std::vector<MatrixView<T>> hidden = scorer_.forward(context, arrays.z, score_, math);
  int64_t first = 0;
  for (std::size_t d = 0; d < 2; ++d) {
    const int64_t rows = batch_shape_.rows(d);
    const VectorView<T> scores(arrays.score.data + first, {rows});
    const VectorView<T> gradient(arrays.dscore.data + first, {rows});
    const VectorView<T> value(arrays.score_loss.data + d, {1});
    // Without negatives nothing is pairwise; the weights are then all zero.
    if (loss == ScoreLoss::bce || batch_shape_.negatives[d] == 0) {
      cross_entropy<T>(context, scores, batch.domain[d].label, batch.domain[d].weight, value,
                       gradient);
    } else {
      pairwise_loss<T>(context, scores, batch_shape_.negatives[d], batch.domain[d].weight, value,
                       gradient);
    }
    first += rows;
  }
  arrays.dz = context.scratch().template take<T, 2>(arrays.z.shape);
  scorer_.backward(context, arrays.z, hidden, score_, arrays.dscore, arrays.dz, math);
  score_norm_.fill_zero();
  gradient_norm<T>(context, arrays.dz, nullptr, score_norm_.view().data);
}

// A gradient of its own, so that its norm can be shown and its weight may change in a graph.
template <class T>
void Cfaa<T>::run_loss(Context& context, Term& term, const double* weight, StepArrays<T>& arrays) {
  const int64_t n = batch_shape_.n, d = options_.dim;
  arrays.loss = term.value;
  arrays.loss_gradient = context.scratch().template take<T, 2>({4 * n, d});
  fill_zero(context, arrays.loss_gradient);
  const auto part = [&](int64_t index) {
    return MatrixView<T>(arrays.loss_gradient.data + index * n * d, {n, d});
  };
  const std::vector<GradientPair<T>> gradients = {{part(0), part(1)}, {part(2), part(3)}};
  std::vector<EmbeddingPair<T>> pairs;
  for (const std::size_t side : {kUser, kItem}) {
    pairs.push_back(
        {tower_rows(arrays.z, kSource, side, n), tower_rows(arrays.z, kTarget, side, n)});
  }
  term.loss.apply(context, {pairs, gradients, term.value});
  term.squared_norm.fill_zero();
  gradient_norm<T>(context, arrays.loss_gradient, nullptr, term.squared_norm.view().data);
  for (const std::size_t side : {kUser, kItem}) {
    add_scaled<T>(context, weight, gradients[side].source, tower_rows(arrays.dz, kSource, side, n));
    add_scaled<T>(context, weight, gradients[side].target, tower_rows(arrays.dz, kTarget, side, n));
  }
}

template <class T>
void Cfaa<T>::run_backward(Context& context, const Batch<T>& batch, MathMode math,
                           StepArrays<T>& arrays) {
  std::vector<MatrixView<T>> dz;
  for (const TowerRun<T>& run : arrays.towers) {
    dz.push_back(tower_rows(arrays.dz, run.domain, run.side, run.z.rows()));
  }
  arrays.tables = towers_.backward(context, arrays.towers, dz, batch, batch.state, math);
}

template <class T>
void Cfaa<T>::step(Context& context, const Batch<T>& batch, ScoreLoss loss, MathMode math,
                   StepObserver<T>* observer) {
  const Arena::Scope scope(context.scratch());
  StepArrays<T> arrays;
  const auto done = [&](const std::string& part) {
    if (observer == nullptr) return;
    if (observer->waits()) context.runtime().synchronize();
    observer->part_done(part, arrays);
  };

  fill_zero(context, parameters_.dense_gradient());
  run_towers(context, batch, batch.state, math, arrays);
  done("towers");
  run_scorer(context, batch, loss, math, arrays);
  done("scorer");
  const double* weight = batch.loss_weight.data;
  for (Term& term : terms_) {
    const Arena::Scope own(context.scratch());
    run_loss(context, term, weight++, arrays);
    done(term.loss.name);
  }
  run_backward(context, batch, math, arrays);
  done("backward");
  if (observer != nullptr && !observer->updates()) return;
  update(context, batch, arrays.tables);
  done("update");
}

template <class T>
void Cfaa<T>::update(Context& context, const Batch<T>& batch,
                     const std::vector<TableGradient<T>>& tables) {
  double* squared = &batch.state->squared_norm;
  gradient_norm<T>(context, as_row(parameters_.dense_gradient()), nullptr, squared);
  for (const TableGradient<T>& table : tables) {
    gradient_norm<T>(context, table.gradient, table.touched.count.data, squared);
  }
  clip_gradient(context, batch.state);
  adam<T>(context, batch.state, parameters_.dense_gradient(), parameters_.dense(),
          parameters_.dense_m(), parameters_.dense_v());
  for (const TableGradient<T>& table : tables) {
    typename Parameters<T>::Table& own = parameters_.table(table.table);
    adam_rows<T>(context, batch.state, table.touched, table.gradient, own.w, own.m, own.v);
  }
}

template <class T>
StepMeasures Cfaa<T>::measures(Context& context, const Batch<T>& batch) const {
  const std::vector<T> score_loss = score_loss_.to_host(), scores = score_.to_host();
  StepState state;
  context.runtime().copy_to_host(&state, batch.state, sizeof(state));
  context.runtime().synchronize();
  StepMeasures measures;
  measures.score = {score_loss[kSource], score_loss[kTarget]};
  measures.score_norm = std::sqrt(score_norm_.to_host()[0]);
  measures.gradient_norm = std::sqrt(state.squared_norm);
  const std::vector<double> weights = to_host(context, batch.loss_weight);
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    measures.losses.push_back({term.loss.name, weights[i], term.value.to_host()[0],
                               std::sqrt(term.squared_norm.to_host()[0])});
  }
  const std::size_t first = static_cast<std::size_t>(batch_shape_.rows(kSource));
  const std::size_t n = static_cast<std::size_t>(batch_shape_.n);
  for (std::size_t i = first; i < first + n; ++i) {
    measures.target_probability += 1 / (1 + std::exp(-static_cast<double>(scores[i])));
  }
  measures.target_probability /= static_cast<double>(n);
  return measures;
}

template <class T>
void Cfaa<T>::embed(Context& context, std::size_t domain, std::size_t side,
                    const SideBatch<T>& batch, MatrixView<T> z) const {
  const Arena::Scope scope(context.scratch());
  const TowerRun<T> run = towers_.prepare(context, domain, side, batch, z);
  if (!towers_.has_layers()) fill_zero(context, z);
  towers_.forward(context, std::span(&run, 1), nullptr, MathMode::fp32);
}

template class Cfaa<float>;
template class Cfaa<double>;

}  // namespace cfaa
