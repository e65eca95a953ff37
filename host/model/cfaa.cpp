#include "host/model/cfaa.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "host/core/columns.h"
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
      alone_(make_group_of_one()),
      solver_(alignment.slim.solver) {
  auto losses = make_losses<T>(context, options_.losses, alignment, options_.z_columns(),
                               batch_shape, parameters_);
  const std::vector<LossTerm> used = options_.losses.used();
  for (std::size_t i = 0; i < losses.size(); ++i) {
    terms_.push_back({std::move(losses[i]), static_cast<std::size_t>(used[i].phase), {}, {}, {}});
  }
  CFAA_ASSERT(std::ssize(terms_) == batch_shape.losses);
  CFAA_ASSERT(parameters_.groups() == batch_shape.groups);
  parameters_.allocate(context);
  divide(context, *alone_, 1, false);
}

template <class T>
void Cfaa<T>::divide(Context& context, Group& group, int64_t parts, bool align_globally) {
  parts_.emplace(context, group, parts);
  const int64_t own = parts_->own();
  if (own > 1) parameters_.allocate_gradients(context, own);
  scores_.clear();
  for (int64_t p = 0; p < own; ++p) {
    scores_.push_back({Tensor<T, 1>(context, {2}), Tensor<double, 1>(context, {1}),
                       Tensor<T, 1>(context, {batch_shape_.all_rows()})});
  }
  for (Term& term : terms_) {
    if (parts > 1 && align_globally) term.pieces = pieces_of(*term.loss);
    const bool whole = term.pieces.empty();
    term.value = Tensor<T, 1>(context, {whole ? own : std::ssize(term.pieces)});
    term.squared_norm = Tensor<double, 1>(context, {whole ? own : 1});
    term.value.fill_zero();
    term.squared_norm.fill_zero();
  }
}

// As many as there are parts, whoever computes them: what each of them adds up is then the same on
// any number of ranks.
template <class T>
std::vector<typename Cfaa<T>::Piece> Cfaa<T>::pieces_of(const Loss<T>& loss) const {
  const int64_t dim = options_.z_columns(), parts = parts_->parts();
  std::vector<Piece> pieces;
  if (loss.pieces() == LossPieces::columns) {
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t first = p * dim / parts, columns = (p + 1) * dim / parts - first;
      pieces.push_back({{kUser, kItem},
                        first,
                        columns,
                        p,
                        static_cast<double>(columns) / static_cast<double>(dim)});
    }
  } else if (loss.pieces() == LossPieces::sides) {
    pieces.push_back({{kUser}, 0, dim, 0, 1});
    pieces.push_back({{kItem}, 0, dim, parts / 2, 1});
  }
  return pieces;
}

template <class T>
std::optional<Solver> Cfaa<T>::solver() const {
  const bool needed = std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return term.loss->name() == "horizontal" && counts(term);
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
  PartScore& own = scores_[arrays.part];
  arrays.score = own.score;
  arrays.score_loss = own.loss;
  arrays.dscore = context.scratch().template take<T, 1>(own.score.shape());
  const std::vector<MatrixView<T>> kept =
      scorer_->forward(context, arrays.z, arrays.score, batch.state, math);
  own.loss.fill_zero();
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
  scorer_->backward(context, arrays.z, kept, arrays.score, arrays.dscore, arrays.dz, batch.state,
                    math);
  measure_norm(context, {&arrays.dz, 1}, own.norm.view().data);
}

template <class T>
void Cfaa<T>::measure_norm(Context& context, std::span<const MatrixView<T>> gradients,
                           double* squared_norm) const {
  context.runtime().fill_zero(squared_norm, sizeof(double));
  for (const MatrixView<T>& gradient : gradients) {
    gradient_norm<T>(context, gradient, nullptr, squared_norm);
  }
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
  input.value = {term.value.view().data + arrays.part, {1}};
  input.math = math;
  return input;
}

// They reach Z through the scorer's backward, as L_C does.
template <class T>
void Cfaa<T>::run_score_losses(Context& context, const Batch<T>& batch, MathMode math,
                               StepArrays<T>& arrays, const Done& done) {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    Term& term = terms_[i];
    if (term.loss->rows() != LossRows::scores || !counts(term)) continue;
    const Arena::Scope own(context.scratch());
    const VectorView<T> gradient = context.scratch().template take<T, 1>(arrays.score.shape);
    fill_zero(context, gradient);
    LossInput<T> input = loss_input(term, batch, math, arrays);
    for (std::size_t d = 0; d < 2; ++d) input.dscore[d] = domain_rows(gradient, d);
    arrays.loss = input.value;
    arrays.loss_gradient = as_row(gradient);
    arrays.loss_rows = LossRows::scores;
    term.loss->apply(context, input);
    measure_norm(context, {&arrays.loss_gradient, 1}, term.squared_norm.view().data + arrays.part);
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
  measure_norm(context, {&computed.gradient, 1}, term.squared_norm.view().data + arrays.part);
  return computed;
}

template <class T>
void Cfaa<T>::add_loss(Context& context, const ComputedLoss& computed, StepArrays<T>& arrays,
                       const Done& done) {
  arrays.loss = computed.input.value;
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
    if (term.loss->rows() != LossRows::scores && counts(term)) active.push_back(i);
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

// Z of the interactions of all parts, part after part.
template <class T>
PerDomain<PerSide<MatrixView<T>>> Cfaa<T>::gather_z(
    Context& context, const std::vector<StepArrays<T>>& arrays) const {
  const int64_t n = batch_shape_.n, dim = options_.z_columns();
  PerDomain<PerSide<MatrixView<T>>> all;
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t s = 0; s < 2; ++s) {
      const auto z = context.scratch().template take<T, 2>({parts_->parts() * n, dim});
      for (const StepArrays<T>& part : arrays) {
        const int64_t place = parts_->first() + static_cast<int64_t>(part.part);
        const MatrixView<T> to(z.data + place * n * dim, {n, dim});
        fill_zero(context, to);
        add_scaled<T>(context, nullptr, tower_rows(part.z, d, s, n), to);
      }
      parts_->gather(context, VectorView<T>(z.data, {z.size()}));
      all[d][s] = z;
    }
  }
  return all;
}

// A loss of all parts together: every rank computes its pieces and shows their gradients to all.
template <class T>
void Cfaa<T>::run_pieces(Context& context, Term& term, const PerDomain<PerSide<MatrixView<T>>>& z,
                         const double* weight, MathMode math, std::vector<StepArrays<T>>& arrays) {
  const std::vector<Piece>& pieces = term.pieces;
  const int64_t n = batch_shape_.n, rows = parts_->parts() * n;
  int64_t width = 0;
  for (const Piece& piece : pieces) width = std::max(width, piece.columns);
  // A piece's gradients: of the source's rows, then the target's; users first.
  const int64_t towers = 2 * std::ssize(pieces[0].sides);
  const auto results =
      context.scratch().template take<T, 3>({std::ssize(pieces), towers * rows, width});
  const auto gradient = [&](std::size_t piece, std::size_t side, std::size_t domain) {
    const auto tower = static_cast<int64_t>(2 * side + domain);
    T* const first = results[static_cast<int64_t>(piece)].data + tower * rows * width;
    return MatrixView<T>(first, {rows, pieces[piece].columns}, {width, 1});
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (!parts_->is_own(piece.part)) continue;
    fill_zero(context, results[static_cast<int64_t>(i)]);
    LossInput<T> input;
    input.solver = solver_;
    input.math = math;
    input.share = piece.share;
    input.value = {term.value.view().data + i, {1}};
    for (std::size_t k = 0; k < piece.sides.size(); ++k) {
      for (std::size_t d = 0; d < 2; ++d) {
        input.z[d][piece.sides[k]] = columns(z[d][piece.sides[k]], piece.first, piece.columns);
        input.dz[d][piece.sides[k]] = gradient(i, k, d);
      }
    }
    if (piece.columns > 0) term.loss->apply(context, input);
  }
  parts_->share_pieces(context, term.value.view(), results);

  std::vector<MatrixView<T>> all;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t k = 0; k < pieces[i].sides.size(); ++k) {
      for (std::size_t d = 0; d < 2; ++d) {
        const MatrixView<T> found = gradient(i, k, d);
        all.push_back(found);
        for (StepArrays<T>& part : arrays) {
          const int64_t place = (parts_->first() + static_cast<int64_t>(part.part)) * n;
          const MatrixView<T> rows_of_part(found.data + place * width, {n, found.cols()},
                                           found.stride);
          const MatrixView<T> dz = tower_rows(part.dz, d, pieces[i].sides[k], n);
          add_scaled<T>(context, weight, rows_of_part,
                        columns(dz, pieces[i].first, pieces[i].columns));
        }
      }
    }
  }
  measure_norm(context, all, term.squared_norm.view().data);
}

template <class T>
void Cfaa<T>::run_divided_losses(Context& context, std::span<const Batch<T>> batches, MathMode math,
                                 std::vector<StepArrays<T>>& arrays) {
  std::optional<PerDomain<PerSide<MatrixView<T>>>> z;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    Term& term = terms_[i];
    if (term.loss->rows() == LossRows::scores || !counts(term)) continue;
    if (!term.pieces.empty()) {
      if (!z) z = gather_z(context, arrays);
      const Arena::Scope own(context.scratch());
      run_pieces(context, term, *z, batches[0].loss_weight.data + i, math, arrays);
      continue;
    }
    for (std::size_t p = 0; p < arrays.size(); ++p) {
      const Arena::Scope own(context.scratch());
      parameters_.use_gradient(static_cast<int64_t>(p));
      add_loss(context, compute_loss(context, i, batches[p], math, arrays[p]), arrays[p],
               [](const std::string&) {});
    }
  }
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
void Cfaa<T>::step(Context& context, std::span<const Batch<T>> batches, ScoreLoss loss,
                   MathMode math, StepObserver<T>* observer) {
  CFAA_ASSERT(std::ssize(batches) == parts_->own());
  CFAA_ASSERT(observer == nullptr || parts_->parts() == 1);
  const Arena::Scope scope(context.scratch());
  std::vector<StepArrays<T>> arrays(batches.size());
  const auto done = [&](const std::string& part) {
    if (observer == nullptr) return;
    if (observer->waits()) context.runtime().synchronize();
    observer->part_done(part, arrays[0]);
  };

  for (std::size_t p = 0; p < batches.size(); ++p) {
    arrays[p].part = p;
    parameters_.use_gradient(static_cast<int64_t>(p));
    for (int group = 0; group < parameters_.groups(); ++group) {
      fill_zero(context, parameters_.dense_gradient(group));
    }
    run_encoder(context, batches[p], batches[p].state, math, arrays[p]);
    done("towers");
    run_scorer(context, batches[p], loss, math, arrays[p], done);
    done("scorer");
  }
  // Not before the eyes of somebody who wants a part's time, nor where cuSOLVER is called.
  const bool beside = context.device() != DeviceKind::cpu &&
                      (observer == nullptr || !observer->waits()) && solver() != Solver::cusolver;
  if (parts_->parts() == 1) {
    run_losses(context, batches[0], math, beside, arrays[0], done);
  } else {
    run_divided_losses(context, batches, math, arrays);
  }
  for (std::size_t p = 0; p < batches.size(); ++p) {
    parameters_.use_gradient(static_cast<int64_t>(p));
    run_backward(context, batches[p], math, arrays[p]);
  }
  parameters_.use_gradient(0);
  done("backward");
  if (observer != nullptr && !observer->updates()) return;
  update(context, batches[0], arrays);
  done("update");
}

template <class T>
void Cfaa<T>::update(Context& context, const Batch<T>& batch,
                     const std::vector<StepArrays<T>>& arrays) {
  std::vector<std::vector<TableGradient<T>>> of_parts;
  for (const StepArrays<T>& part : arrays) {
    std::copy_if(part.tables.begin(), part.tables.end(),
                 std::back_inserter(of_parts.emplace_back()), [&](const TableGradient<T>& table) {
                   return !phase_.freezes(parameters_.table(table.table).name);
                 });
  }
  std::vector<TableGradient<T>> learned = of_parts[0];
  if (parts_->parts() > 1) {
    for (int group = 0; group < parameters_.groups(); ++group) {
      std::vector<VectorView<T>> gradients;
      for (std::size_t p = 0; p < arrays.size(); ++p) {
        parameters_.use_gradient(static_cast<int64_t>(p));
        gradients.push_back(parameters_.dense_gradient(group));
      }
      parts_->sum(context, gradients);
    }
    parameters_.use_gradient(0);
    learned = parts_->sum_rows(context, of_parts);
    parts_->share_fault(context);
  }
  update_group(context, 0, batch.state, learned);
  for (const Term& term : terms_) {
    const int group = term.loss->group();
    if (group > 0 && counts(term)) update_group(context, group, batch.state + group, {});
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
StepMeasures Cfaa<T>::measures(Context& context, std::span<const Batch<T>> batches) const {
  StepState state;
  context.runtime().copy_to_host(&state, batches[0].state, sizeof(state));
  context.runtime().synchronize();
  // Of each own part: both domains' L_C, its squared norm, the sum of the probabilities, then each
  // loss's value and squared norm.
  std::vector<double> own;
  const std::size_t first = static_cast<std::size_t>(batch_shape_.rows(kSource));
  const std::size_t n = static_cast<std::size_t>(batch_shape_.n);
  for (std::size_t p = 0; p < scores_.size(); ++p) {
    const std::vector<T> loss = scores_[p].loss.to_host(), scores = scores_[p].score.to_host();
    double probability = 0;
    for (std::size_t i = first; i < first + n; ++i) {
      probability += 1 / (1 + std::exp(-static_cast<double>(scores[i])));
    }
    own.insert(own.end(), {static_cast<double>(loss[kSource]), static_cast<double>(loss[kTarget]),
                           scores_[p].norm.to_host()[0], probability});
    for (const Term& term : terms_) {
      const std::vector<T> values = term.value.to_host();
      double value = 0;
      for (std::size_t i = 0; i < term.pieces.size(); ++i) {
        value += term.pieces[i].share * static_cast<double>(values[i]);
      }
      const std::vector<double> norms = term.squared_norm.to_host();
      if (term.pieces.empty()) value = values[p];
      own.insert(own.end(), {value, norms[term.pieces.empty() ? p : 0]});
    }
  }
  const std::vector<double> all = parts_->gather_host(context, own);

  const auto parts = static_cast<std::size_t>(parts_->parts());
  const std::size_t count = all.size() / parts;
  const auto sum = [&](std::size_t i) {
    double total = 0;
    for (std::size_t p = 0; p < parts; ++p) total += all[p * count + i];
    return total;
  };
  const auto mean_of = static_cast<double>(parts);
  StepMeasures measures;
  measures.score = {sum(kSource), sum(kTarget)};
  measures.score_norm = std::sqrt(sum(2));
  measures.gradient_norm = std::sqrt(state.squared_norm);
  measures.target_probability = sum(3) / (mean_of * static_cast<double>(n));
  const std::vector<double> weights = to_host(context, batches[0].loss_weight);
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    StepMeasures::Loss loss{term.loss->name(), weights[i], all[4 + 2 * i],
                            std::sqrt(all[5 + 2 * i]), term.loss->sign()};
    if (term.pieces.empty()) {
      loss.weight *= mean_of;
      loss.value = sum(4 + 2 * i) / mean_of;
      loss.norm = std::sqrt(sum(5 + 2 * i)) / mean_of;
    }
    measures.losses.push_back(std::move(loss));
  }
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
