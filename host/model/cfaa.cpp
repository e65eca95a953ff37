#include "host/model/cfaa.h"

#include <cmath>

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

constexpr std::size_t kVertical = 0;  // in alignment_; the horizontal loss is 1

}  // namespace

template <class T>
Cfaa<T>::Cfaa(Context& context, const ModelOptions& options, const AlignmentOptions& alignment,
              const ModelShape& shape, const BatchShape& batch_shape)
    : options_(options),
      batch_shape_(batch_shape),
      towers_(context, options_, shape, parameters_),
      scorer_(options_, parameters_),
      losses_(context, {4}),
      norms_(context, {3}),
      score_(context, {batch_shape.all_rows()}) {
  alignment_.push_back(options_.vertical() ? make_vertical<T>(alignment) : nullptr);
  alignment_.push_back(options_.horizontal() ? make_horizontal<T>(alignment) : nullptr);
  parameters_.allocate(context);
  losses_.fill_zero();
  norms_.fill_zero();
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
typename Cfaa<T>::Forward Cfaa<T>::forward(Context& context, const Batch<T>& batch,
                                           const StepState* state, MathMode math) {
  Forward result;
  result.z = context.scratch().template take<T, 2>({batch_shape_.all_rows(), 2 * options_.dim});
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t s = 0; s < 2; ++s) {
      result.runs.push_back(towers_.prepare(context, d, s, batch.domain[d].side[s],
                                            tower_rows(result.z, d, s, batch_shape_.rows(d))));
    }
  }
  if (!towers_.has_layers()) fill_zero(context, result.z);
  towers_.forward(context, result.runs, state, math);
  return result;
}

template <class T>
void Cfaa<T>::initialize(Context& context, const Batch<T>& batch, uint64_t seed) {
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
  const bool own_target = options_.towers != TowerSharing::shared;
  for (std::size_t d = 0; d < (own_target ? 2u : 1u); ++d) {
    for (std::size_t s = 0; s < 2; ++s) start_layers(towers_.weights(d, s));
  }
  start_layers(scorer_.weights());

  const Arena::Scope scope(context.scratch());
  const Forward first = forward(context, batch, nullptr, MathMode::fp32);
  for (const TowerRun<T>& run : first.runs) {
    if ((run.domain == kTarget && !own_target) || !towers_.has_layers()) continue;
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

template <class T>
void Cfaa<T>::align(Context& context, const Batch<T>& batch, MatrixView<T> z, MatrixView<T> dz,
                    const Trace<T>* trace) {
  const int64_t n = batch_shape_.n, d = options_.dim;
  std::vector<EmbeddingPair<T>> pairs;
  for (const std::size_t side : {kUser, kItem}) {
    pairs.push_back({tower_rows(z, kSource, side, n), tower_rows(z, kTarget, side, n)});
  }
  for (std::size_t i = 0; i < alignment_.size(); ++i) {
    if (alignment_[i] == nullptr) continue;
    const Arena::Scope scope(context.scratch());
    // A gradient of its own, so that its norm can be shown and its lambda may change in a graph.
    const MatrixView<T> own = context.scratch().template take<T, 2>({4 * n, d});
    fill_zero(context, own);
    const auto part = [&](int64_t index) {
      return MatrixView<T>(own.data + index * n * d, {n, d});
    };
    const std::vector<GradientPair<T>> gradients = {{part(0), part(1)}, {part(2), part(3)}};
    const VectorView<T> loss(losses_.view().data + 2 + i, {1});
    alignment_[i]->apply(context, pairs, gradients, loss);
    gradient_norm<T>(context, own, nullptr, norms_.view().data + 1 + i);
    const double* lambda = i == kVertical ? &batch.state->vertical : &batch.state->horizontal;
    for (const std::size_t side : {kUser, kItem}) {
      add_scaled<T>(context, lambda, gradients[side].source, tower_rows(dz, kSource, side, n));
      add_scaled<T>(context, lambda, gradients[side].target, tower_rows(dz, kTarget, side, n));
    }
    if (trace != nullptr) {
      (*trace)(std::string("loss.") + alignment_[i]->name(), as_row(loss), {});
      (*trace)(std::string("gradient.z.") + alignment_[i]->name(), own, {});
    }
  }
}

template <class T>
void Cfaa<T>::step(Context& context, const Batch<T>& batch, ScoreLoss loss, MathMode math,
                   const Trace<T>* trace) {
  const Arena::Scope scope(context.scratch());
  Arena& arena = context.scratch();
  fill_zero(context, parameters_.dense_gradient());
  norms_.fill_zero();

  const Forward pass = forward(context, batch, batch.state, math);
  const std::vector<MatrixView<T>> hidden = scorer_.forward(context, pass.z, score_, math);

  // L_C and its gradient with respect to the scores, domain by domain
  const VectorView<T> dscore = arena.take<T, 1>(score_.shape());
  int64_t first = 0;
  for (std::size_t d = 0; d < 2; ++d) {
    const int64_t rows = batch_shape_.rows(d);
    const VectorView<T> scores(score_.view().data + first, {rows});
    const VectorView<T> gradient(dscore.data + first, {rows});
    const VectorView<T> value(losses_.view().data + d, {1});
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

  const MatrixView<T> dz = arena.take<T, 2>(pass.z.shape);
  scorer_.backward(context, pass.z, hidden, score_, dscore, dz, math);
  gradient_norm<T>(context, dz, nullptr, norms_.view().data);
  align(context, batch, pass.z, dz, trace);

  std::vector<MatrixView<T>> dz_of_run;
  for (const TowerRun<T>& run : pass.runs) {
    dz_of_run.push_back(tower_rows(dz, run.domain, run.side, run.z.rows()));
  }
  const std::vector<TableGradient<T>> tables =
      towers_.backward(context, pass.runs, dz_of_run, batch, batch.state, math);

  if (trace != nullptr) {
    for (const TowerRun<T>& run : pass.runs) {
      const std::string name = tower_name(run.domain, run.side);
      (*trace)("x." + name, run.x, {});
      for (std::size_t l = 0; l < run.hidden.size(); ++l) {
        (*trace)("hidden" + std::to_string(l) + "." + name, run.hidden[l], {});
      }
    }
    (*trace)("z", pass.z, {});
    (*trace)("score", as_row(score_.view()), {});
    (*trace)("loss.score", as_row(VectorView<T>(losses_.view().data, {2})), {});
    (*trace)("gradient.score", as_row(dscore), {});
    (*trace)("gradient.z", dz, {});
    for (std::size_t i = 0; i < parameters_.layers().size(); ++i) {
      (*trace)("gradient." + parameters_.layers()[i].name,
               parameters_.gradient(static_cast<int>(i)), {});
    }
    for (const TableGradient<T>& table : tables) {
      (*trace)("gradient." + parameters_.table(table.table).name, table.gradient,
               table.touched.row);
    }
  }
  update(context, batch, tables);
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
StepReport Cfaa<T>::report(Context& context, const Batch<T>& batch) const {
  const std::vector<T> losses = losses_.to_host(), scores = score_.to_host();
  const std::vector<double> norms = norms_.to_host();
  StepState state;
  context.runtime().copy_to_host(&state, batch.state, sizeof(state));
  context.runtime().synchronize();
  StepReport report{
      losses[0],           losses[1],           losses[2],           losses[3],
      std::sqrt(norms[0]), std::sqrt(norms[1]), std::sqrt(norms[2]), std::sqrt(state.squared_norm)};
  const std::size_t first = static_cast<std::size_t>(batch_shape_.rows(kSource));
  const std::size_t n = static_cast<std::size_t>(batch_shape_.n);
  for (std::size_t i = first; i < first + n; ++i) {
    report.target_probability += 1 / (1 + std::exp(-static_cast<double>(scores[i])));
  }
  report.target_probability /= static_cast<double>(n);
  return report;
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
