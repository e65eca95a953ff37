#include "host/model/cfaa.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "host/core/error.h"
#include "host/device/branch.h"
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

// A model has towers for the domains that its batches have rows of.
ModelShape trained_shape(ModelShape shape, const BatchShape& batch) {
  shape.used = batch.used;
  return shape;
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
  for (const Loss& loss : losses) sum += loss.sign * loss.weight * loss.value;
  return sum;
}

template <class T>
Cfaa<T>::Cfaa(Context& context, const ModelOptions& options, const AlignmentOptions& alignment,
              const ModelShape& shape, const BatchShape& batch_shape)
    : options_(options),
      batch_shape_(batch_shape),
      encoder_(make_encoder<T>(context, options_, trained_shape(shape, batch_shape), parameters_)),
      scorer_(make_pair_scorer<T>(context, options_, parameters_)),
      solver_(alignment.slim.solver),
      score_loss_(context, {2}),
      score_norm_(context, {1}),
      score_(context, {batch_shape.all_rows()}) {
  auto losses = make_losses<T>(context, options_.losses, alignment, options_.z_columns(),
                               batch_shape, parameters_);
  const std::vector<LossTerm> used = options_.losses.used();
  for (std::size_t i = 0; i < losses.size(); ++i) {
    terms_.push_back({std::move(losses[i]), static_cast<std::size_t>(used[i].phase),
                      Tensor<T, 1>(context, {1}), Tensor<double, 1>(context, {1})});
    terms_.back().value.fill_zero();
    terms_.back().squared_norm.fill_zero();
  }
  CFAA_ASSERT(std::ssize(terms_) == batch_shape.losses);
  CFAA_ASSERT(parameters_.groups() == batch_shape.groups);
  parameters_.allocate(context);
}

template <class T>
std::optional<Solver> Cfaa<T>::solver() const {
  const bool needed = std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return term.loss->name() == "horizontal" && term.phase <= phase_index_;
  });
  return needed ? std::optional(solver_) : std::nullopt;
}

template <class T>
MatrixView<T> Cfaa<T>::tower_rows(MatrixView<T> z, std::size_t domain, std::size_t side,
                                  int64_t rows) const {
  const int64_t first = domain == kSource ? 0 : batch_shape_.rows(kSource);
  const int64_t width = options_.z_columns();
  return {
      z.data + first * z.stride[0] + static_cast<int64_t>(side) * width, {rows, width}, z.stride};
}

template <class T>
void Cfaa<T>::run_encoder(Context& context, const Batch<T>& batch, const StepState* state,
                          MathMode math, StepArrays<T>& arrays) {
  arrays.z =
      context.scratch().template take<T, 2>({batch_shape_.all_rows(), 2 * options_.z_columns()});
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t s = 0; batch_shape_.used[d] && s < 2; ++s) {
      arrays.runs.push_back(encoder_->prepare(context, d, s, batch.domain[d].side[s],
                                              tower_rows(arrays.z, d, s, batch_shape_.rows(d))));
    }
  }
  fill_zero(context, arrays.z);
  encoder_->forward(context, arrays.runs, state, math);
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
  for (std::size_t d = 0; d < 2; ++d) {
    if (d == kTarget && shares_source()) continue;
    for (std::size_t s = 0; s < 2; ++s) start_layers(encoder_->layers(d, s).weight);
  }
  start_layers(scorer_->weights());
  for (const Term& term : terms_) {
    for (const std::vector<int>& weights : term.loss->layers()) start_layers(weights);
  }
  encoder_->start(context);
}

template <class T>
void Cfaa<T>::initialize(Context& context, const Batch<T>& batch, uint64_t seed) {
  start_parameters(context, seed);
  const Arena::Scope scope(context.scratch());
  StepArrays<T> first;
  run_encoder(context, batch, nullptr, MathMode::fp32, first);
  for (const auto& run : first.runs) {
    const std::vector<int>& layers = encoder_->layers(run->domain, run->side).weight;
    if ((run->domain == kTarget && shares_source()) || layers.empty()) continue;
    const double found = deviation(context, run->z);
    if (!(found > 0)) continue;
    const MatrixView<T> weight = parameters_.weight(layers.back());
    std::vector<T> values = to_host(context, weight);
    for (T& value : values) value = static_cast<T>(value * (options_.output_scale / found));
    context.runtime().copy_from_host(weight.data, values.data(), values.size() * sizeof(T));
    context.runtime().synchronize();
  }
  if (options_.towers == TowerSharing::tied_start && batch_shape_.used[kSource]) {
    copy_source(context);
  }
}

template <class T>
void Cfaa<T>::copy_source(Context& context) {
  const auto copy = [&](const std::vector<int>& from, const std::vector<int>& to) {
    for (std::size_t l = 0; l < from.size(); ++l) {
      const MatrixView<T> weight = parameters_.weight(to[l]);
      context.runtime().copy(weight.data, parameters_.weight(from[l]).data,
                             static_cast<std::size_t>(weight.size()) * sizeof(T));
    }
  };
  for (std::size_t s = 0; s < 2; ++s) {
    const EncoderLayers &from = encoder_->layers(kSource, s), &to = encoder_->layers(kTarget, s);
    copy(from.weight, to.weight);
    copy(from.bias, to.bias);
  }
}

template <class T>
void Cfaa<T>::enter(std::size_t index, const Phase& phase) {
  phase_index_ = index;
  phase_ = phase;
}

template <class T>
VectorView<T> Cfaa<T>::domain_rows(VectorView<T> all, std::size_t domain) const {
  const int64_t first = domain == kSource ? 0 : batch_shape_.rows(kSource);
  return {all.data + first, {batch_shape_.rows(domain)}};
}

// Scores, L_C of each domain, and its gradients with respect to the scores and Z.
template <class T>
void Cfaa<T>::run_scorer(Context& context, const Batch<T>& batch, ScoreLoss loss, MathMode math,
                         StepArrays<T>& arrays, const Done& done) {
  arrays.score = score_;
  arrays.score_loss = score_loss_;
  arrays.dscore = context.scratch().template take<T, 1>(score_.shape());
  const std::vector<MatrixView<T>> kept =
      scorer_->forward(context, arrays.z, score_, batch.state, math);
  score_loss_.fill_zero();
  for (std::size_t d = 0; d < 2; ++d) {
    if (!batch_shape_.used[d]) continue;
    const VectorView<T> scores = domain_rows(arrays.score, d);
    const VectorView<T> offset = batch.domain[d].offset;
    if (offset.data != nullptr) add_scaled<T>(context, nullptr, as_row(offset), as_row(scores));
    const VectorView<T> gradient = domain_rows(arrays.dscore, d);
    const VectorView<T> value(arrays.score_loss.data + d, {1});
    // Without negatives nothing is pairwise; the weights are then all zero.
    if (loss == ScoreLoss::bce || batch_shape_.negatives[d] == 0) {
      cross_entropy<T>(context, scores, batch.domain[d].label, batch.domain[d].weight, value,
                       gradient);
    } else {
      pairwise_loss<T>(context, scores, batch_shape_.negatives[d], batch.domain[d].weight, value,
                       gradient);
    }
  }
  run_score_losses(context, batch, math, arrays, done);
  arrays.dz = context.scratch().template take<T, 2>(arrays.z.shape);
  scorer_->backward(context, arrays.z, kept, score_, arrays.dscore, arrays.dz, batch.state, math);
  score_norm_.fill_zero();
  gradient_norm<T>(context, arrays.dz, nullptr, score_norm_.view().data);
}

template <class T>
LossInput<T> Cfaa<T>::loss_input(const Term& term, const Batch<T>& batch, MathMode math,
                                 const StepArrays<T>& arrays) const {
  LossInput<T> input;
  input.solver = solver_;
  for (std::size_t d = 0; d < 2; ++d) {
    if (!batch_shape_.used[d]) continue;
    const bool all = term.loss->rows() == LossRows::all;
    for (std::size_t s = 0; s < 2; ++s) {
      input.z[d][s] = tower_rows(arrays.z, d, s, all ? batch_shape_.rows(d) : batch_shape_.n);
    }
    input.score[d] = domain_rows(arrays.score, d);
    input.label[d] = batch.domain[d].label;
    input.weight[d] = batch.domain[d].weight;
  }
  input.negatives = batch_shape_.negatives;
  input.value = term.value;
  input.math = math;
  return input;
}

// They reach Z through the scorer's backward, as L_C does.
template <class T>
void Cfaa<T>::run_score_losses(Context& context, const Batch<T>& batch, MathMode math,
                               StepArrays<T>& arrays, const Done& done) {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    Term& term = terms_[i];
    if (term.loss->rows() != LossRows::scores || term.phase > phase_index_) continue;
    const Arena::Scope own(context.scratch());
    const VectorView<T> gradient = context.scratch().template take<T, 1>(score_.shape());
    fill_zero(context, gradient);
    LossInput<T> input = loss_input(term, batch, math, arrays);
    for (std::size_t d = 0; d < 2; ++d) input.dscore[d] = domain_rows(gradient, d);
    arrays.loss = term.value;
    arrays.loss_gradient = as_row(gradient);
    arrays.loss_rows = LossRows::scores;
    term.loss->apply(context, input);
    term.squared_norm.fill_zero();
    gradient_norm<T>(context, arrays.loss_gradient, nullptr, term.squared_norm.view().data);
    add_scaled<T>(context, batch.loss_weight.data + i, arrays.loss_gradient, as_row(arrays.dscore));
    done(term.loss->name());
  }
}

// A gradient of its own, so that its norm can be shown and its weight may change in a graph.
template <class T>
typename Cfaa<T>::ComputedLoss Cfaa<T>::compute_loss(Context& context, std::size_t index,
                                                     const Batch<T>& batch, MathMode math,
                                                     const StepArrays<T>& arrays) {
  Term& term = terms_[index];
  ComputedLoss computed{
      &term, batch.loss_weight.data + index, loss_input(term, batch, math, arrays), {}};
  LossInput<T>& input = computed.input;
  const int64_t dim = options_.z_columns();
  const int64_t source = input.z[kSource][kUser].rows(), target = input.z[kTarget][kUser].rows();
  computed.gradient = context.scratch().template take<T, 2>({2 * (source + target), dim});
  fill_zero(context, computed.gradient);
  T* next = computed.gradient.data;
  for (const std::size_t s : {kUser, kItem}) {
    for (const std::size_t d : {kSource, kTarget}) {
      const int64_t rows = input.z[d][s].rows();
      input.dz[d][s] = {next, {rows, dim}};
      next += rows * dim;
    }
  }
  term.loss->apply(context, input);
  term.squared_norm.fill_zero();
  gradient_norm<T>(context, computed.gradient, nullptr, term.squared_norm.view().data);
  return computed;
}

template <class T>
void Cfaa<T>::add_loss(Context& context, const ComputedLoss& computed, StepArrays<T>& arrays,
                       const Done& done) {
  arrays.loss = computed.term->value;
  arrays.loss_gradient = computed.gradient;
  arrays.loss_rows = computed.term->loss->rows();
  for (const std::size_t s : {kUser, kItem}) {
    for (const std::size_t d : {kSource, kTarget}) {
      add_scaled<T>(context, computed.weight, computed.input.dz[d][s],
                    tower_rows(arrays.dz, d, s, computed.input.z[d][s].rows()));
    }
  }
  done(computed.term->loss->name());
}

template <class T>
void Cfaa<T>::run_losses(Context& context, const Batch<T>& batch, MathMode math, bool beside,
                         StepArrays<T>& arrays, const Done& done) {
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    if (term.loss->rows() != LossRows::scores && term.phase <= phase_index_) active.push_back(i);
  }
  if (active.size() < 2 || !beside) {
    for (const std::size_t index : active) {
      const Arena::Scope own(context.scratch());
      add_loss(context, compute_loss(context, index, batch, math, arrays), arrays, done);
    }
    return;
  }
  const Arena::Scope both(context.scratch());
  std::vector<ComputedLoss> computed;
  Branch branch(context);
  for (const std::size_t index : active) {
    computed.push_back(compute_loss(context, index, batch, math, arrays));
    if (index == active.front()) branch.leave();
  }
  branch.join();
  for (const ComputedLoss& each : computed) add_loss(context, each, arrays, done);
}

template <class T>
void Cfaa<T>::run_backward(Context& context, const Batch<T>& batch, MathMode math,
                           StepArrays<T>& arrays) {
  std::vector<MatrixView<T>> dz;
  for (const auto& run : arrays.runs) {
    dz.push_back(tower_rows(arrays.dz, run->domain, run->side, run->z.rows()));
  }
  arrays.tables =
      encoder_->backward(context, EncoderRuns<T>(arrays.runs), dz, batch, batch.state, math);
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

  for (int group = 0; group < parameters_.groups(); ++group) {
    fill_zero(context, parameters_.dense_gradient(group));
  }
  run_encoder(context, batch, batch.state, math, arrays);
  done("towers");
  run_scorer(context, batch, loss, math, arrays, done);
  done("scorer");
  // Not before the eyes of somebody who wants a part's time, nor where cuSOLVER is called.
  const bool beside = context.device() != DeviceKind::cpu &&
                      (observer == nullptr || !observer->waits()) && solver() != Solver::cusolver;
  run_losses(context, batch, math, beside, arrays, done);
  run_backward(context, batch, math, arrays);
  done("backward");
  if (observer != nullptr && !observer->updates()) return;
  update(context, batch, arrays.tables);
  done("update");
}

template <class T>
void Cfaa<T>::update(Context& context, const Batch<T>& batch,
                     const std::vector<TableGradient<T>>& tables) {
  std::vector<TableGradient<T>> learned;
  std::copy_if(tables.begin(), tables.end(), std::back_inserter(learned),
               [&](const TableGradient<T>& table) {
                 return !phase_.freezes(parameters_.table(table.table).name);
               });
  update_group(context, 0, batch.state, learned);
  for (const Term& term : terms_) {
    const int group = term.loss->group();
    if (group > 0 && term.phase <= phase_index_) {
      update_group(context, group, batch.state + group, {});
    }
  }
}

template <class T>
void Cfaa<T>::update_group(Context& context, int group, StepState* state,
                           const std::vector<TableGradient<T>>& tables) {
  const auto pieces =
      parameters_.pieces(group, [&](const std::string& name) { return phase_.freezes(name); });
  const auto piece_of = [](VectorView<T> all, const typename Parameters<T>::Piece& piece) {
    return VectorView<T>(all.data + piece.first, {piece.count});
  };
  for (const auto& piece : pieces) {
    gradient_norm<T>(context, as_row(piece_of(parameters_.dense_gradient(group), piece)), nullptr,
                     &state->squared_norm);
  }
  for (const TableGradient<T>& table : tables) {
    gradient_norm<T>(context, table.gradient, table.touched.count.data, &state->squared_norm);
  }
  clip_gradient(context, state);
  for (const auto& piece : pieces) {
    adam<T>(context, state, piece_of(parameters_.dense_gradient(group), piece),
            piece_of(parameters_.dense(group), piece), piece_of(parameters_.dense_m(group), piece),
            piece_of(parameters_.dense_v(group), piece));
  }
  for (const TableGradient<T>& table : tables) {
    typename Parameters<T>::Table& own = parameters_.table(table.table);
    adam_rows<T>(context, state, table.touched, table.gradient, own.w, own.m, own.v);
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
    measures.losses.push_back({term.loss->name(), weights[i], term.value.to_host()[0],
                               std::sqrt(term.squared_norm.to_host()[0]), term.loss->sign()});
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
  const std::unique_ptr<EncoderRun<T>> run = encoder_->prepare(context, domain, side, batch, z);
  fill_zero(context, z);
  encoder_->forward(context, std::span(&run, 1), nullptr, MathMode::fp32);
}

template class Cfaa<float>;
template class Cfaa<double>;

}  // namespace cfaa
