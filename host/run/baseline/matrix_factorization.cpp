#include "host/run/baseline/matrix_factorization.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/tensor.h"
#include "host/core/terminal/progress.h"
#include "host/core/terminal/quantity.h"
#include "host/eval/evaluation.h"
#include "host/model/normal_init.h"
#include "host/ops/adam.h"
#include "host/ops/embedding_bag.h"
#include "host/ops/row_dot.h"
#include "host/ops/score_loss.h"
#include "host/train/negative_sampler.h"
#include "host/train/permutation.h"
#include "host/train/touched_rows.h"

namespace cfaa {
namespace {

constexpr double kTableScale = 0.1;
constexpr std::size_t kNdcg = 2;  // of kMetricNames
// Philox streams: the tables' initial values have the first two.
constexpr uint64_t kShuffle = uint64_t{1} << 32, kNegative = uint64_t{2} << 32;

template <class T>
VectorView<T> upload(Context& context, const std::vector<T>& host) {
  const VectorView<T> taken =
      context.scratch().template take<T, 1>({static_cast<int64_t>(host.size())});
  context.runtime().copy_from_host(taken.data, host.data(), host.size() * sizeof(T));
  return taken;
}

// The rows of one table that a step reads, one to a bag, and the same by row of the table.
class RowLists {
 public:
  explicit RowLists(int64_t table_rows) : lister_(table_rows) {}

  void fill(const std::vector<int32_t>& rows) {
    for (std::vector<int32_t>* array : {&index_, &touched_row_, &touched_bag_}) {
      array->resize(rows.size());
    }
    offset_.resize(rows.size() + 1);
    touched_offset_.resize(rows.size() + 1);
    weight_.resize(rows.size());
    touched_weight_.resize(rows.size());
    const EdgeLists<float> lists = {
        view(offset_),      view(index_),          view(weight_),      view(touched_count_),
        view(touched_row_), view(touched_offset_), view(touched_bag_), view(touched_weight_)};
    fill_single_rows(lists, [&](int32_t bag) { return rows[static_cast<std::size_t>(bag)]; });
    lister_.list(lists);
    touched_row_.resize(static_cast<std::size_t>(touched_count_[0]));
  }

  Bags<float> bags(Context& context) const {
    return {upload(context, offset_), upload(context, index_), upload(context, weight_)};
  }
  TouchedRows<float> touched(Context& context) const {
    return {upload(context, touched_count_), upload(context, touched_row_),
            upload(context, touched_offset_), upload(context, touched_bag_),
            upload(context, touched_weight_)};
  }

 private:
  template <class T>
  static VectorView<T> view(std::vector<T>& array) {
    return {array.data(), {static_cast<int64_t>(array.size())}};
  }

  TouchedRowLister lister_;
  std::vector<int32_t> offset_, index_, touched_count_ = {0}, touched_row_, touched_offset_,
                                        touched_bag_;
  std::vector<float> weight_, touched_weight_;
};

struct Table {
  Table(Context& context, int64_t rows, int64_t dim, uint64_t seed, uint64_t stream)
      : w(context, {rows, dim}), m(context, {rows, dim}), v(context, {rows, dim}), lists(rows) {
    fill_normal<float>(context, w, kTableScale, seed, stream);
    m.fill_zero();
    v.fill_zero();
  }
  Tensor<float, 2> w, m, v;
  RowLists lists;
};

class Factorizer {
 public:
  Factorizer(Context& context, const Domain& domain, const BaselineOptions& options)
      : context_(context),
        options_(options),
        liked_(training_positives(domain)),
        random_{static_cast<uint64_t>(options.seed)},
        negatives_(random_.seed, domain.items.size()),
        table_{Table(context, domain.users.size(), options.dim, random_.seed, kUser),
               Table(context, domain.items.size(), options.dim, random_.seed, kItem)} {
    for (int32_t user = 0; user < liked_.users(); ++user) {
      user_.insert(user_.end(), liked_.of(user).size(), user);
    }
    if (user_.empty()) {
      throw Error(domain.path.string() +
                  ": its training split has no positive interaction to learn from");
    }
  }

  int64_t steps_per_epoch() const {
    return (positives() + options_.batch_size - 1) / options_.batch_size;
  }

  void epoch(int64_t number, Progress& progress) {
    const Permutation order(positives(), random_.seed, kShuffle + static_cast<uint64_t>(number));
    for (int64_t first = 0; first < positives(); first += options_.batch_size) {
      choose_batch(order, first, std::min(first + options_.batch_size, positives()));
      step();
      progress.advance(1);
    }
    context_.check_faults();
  }

  DomainEmbeddings embeddings() const {
    DomainEmbeddings result;
    result.dim = options_.dim;
    for (std::size_t side = 0; side < 2; ++side) {
      result.count[side] = table_[side].w.shape()[0];
      result.z[side] = table_[side].w.to_host();
    }
    return result;
  }

 private:
  int64_t positives() const { return static_cast<int64_t>(user_.size()); }

  // Positives first ... last - 1 of the order, then the negatives of the first, of the second ...
  void choose_batch(const Permutation& order, int64_t first, int64_t last) {
    const auto n = static_cast<std::size_t>(last - first);
    const auto negatives = static_cast<std::size_t>(options_.negatives);
    std::vector<int32_t> users(n * (1 + negatives)), items(users.size());
    weight_.assign(users.size(), 0.0f);
    int64_t counted = 0;
    for (std::size_t r = 0; r < n; ++r) {
      const auto which = static_cast<std::size_t>(order(first + static_cast<int64_t>(r)));
      users[r] = user_[which];
      items[r] = liked_.item[which];
      for (std::size_t j = 0; j < negatives; ++j) {
        const std::size_t at = n + r * negatives + j;
        const NegativeSampler::Draw drawn =
            negatives_(at, kNegative + static_cast<uint64_t>(step_),
                       [&](int32_t item) { return liked_.contains(users[r], item); });
        users[at] = users[r];
        items[at] = drawn.taken ? items[r] : drawn.item;
        weight_[at] = drawn.taken ? 0.0f : 1.0f;
        counted += !drawn.taken;
      }
    }
    for (float& weight : weight_) weight /= static_cast<float>(std::max<int64_t>(counted, 1));
    table_[kUser].lists.fill(users);
    table_[kItem].lists.fill(items);
  }

  void step() {
    const Arena::Scope scope(context_.scratch());
    PerSide<Bags<float>> bags;
    PerSide<TouchedRows<float>> touched;
    PerSide<MatrixView<float>> z, dz;
    const auto rows = static_cast<int64_t>(weight_.size());
    for (std::size_t side = 0; side < 2; ++side) {
      bags[side] = table_[side].lists.bags(context_);
      touched[side] = table_[side].lists.touched(context_);
      z[side] = context_.scratch().take<float, 2>({rows, options_.dim});
      dz[side] = zeros<2>({rows, options_.dim});
    }
    const StepState state = next_state();
    const VectorView<StepState> state_on_device = context_.scratch().take<StepState, 1>({1});
    context_.runtime().copy_from_host(state_on_device.data, &state, sizeof(state));
    const VectorView<float> weight = upload(context_, weight_), score = zeros<1>({rows}),
                            dscore = zeros<1>({rows}), loss = zeros<1>({1});

    for (std::size_t side = 0; side < 2; ++side) {
      embedding_bag<float>(context_, table_[side].w.view(), bags[side], z[side]);
    }
    row_dot<float>(context_, z[kUser], z[kItem], 1.0, score);
    pairwise_loss<float>(context_, score, options_.negatives, weight, loss, dscore);
    row_dot_backward<float>(context_, z[kUser], z[kItem], 1.0, dscore, dz[kUser], dz[kItem]);
    for (std::size_t side = 0; side < 2; ++side) {
      Table& table = table_[side];
      const MatrixView<float> gradient =
          context_.scratch().take<float, 2>({touched[side].row.size(), options_.dim});
      embedding_bag_backward<float>(context_, dz[side], touched[side], gradient);
      adam_rows<float>(context_, state_on_device.data, touched[side], gradient, table.w.view(),
                       table.m.view(), table.v.view());
    }
    context_.runtime().synchronize();  // the lists are filled anew for the next step
  }

  StepState next_state() {
    StepState state;
    state.embedding_rate = options_.learning_rate;
    state.embedding_decay = options_.weight_decay;
    state.count(step_++);
    return state;
  }

  template <int Rank>
  View<float, Rank> zeros(std::array<int64_t, Rank> shape) {
    const View<float, Rank> taken = context_.scratch().take<float, Rank>(shape);
    context_.runtime().fill_zero(taken.data,
                                 static_cast<std::size_t>(taken.size()) * sizeof(float));
    return taken;
  }

  Context& context_;
  const BaselineOptions& options_;
  UserItems liked_;
  std::vector<int32_t> user_;  // of each positive; its item is liked_.item
  Philox random_;
  NegativeSampler negatives_;
  PerSide<Table> table_;
  std::vector<float> weight_;
  int64_t step_ = 0;
};

}  // namespace

Factorization factorize(Context& context, const Domain& domain, const BaselineOptions& options) {
  Factorizer factorizer(context, domain, options);
  const HeldOut held_out = make_held_out(domain, Split::valid, Mask::automatic);
  const bool validates = !held_out.positives.item.empty();
  EvaluationOptions validation;
  validation.ks = {10};
  validation.bootstrap = 0;

  Factorization best;
  best.valid = -1;
  Progress progress("mf", options.epochs * factorizer.steps_per_epoch(), {"step"});
  for (int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    factorizer.epoch(epoch, progress);
    best.epochs = epoch;
    if (!validates) continue;
    DomainEmbeddings embeddings = factorizer.embeddings();
    const DotScorer<float> scorer(embeddings.view(kUser), embeddings.view(kItem));
    const Evaluation evaluation = evaluate(context, scorer, held_out, validation);
    const double value = evaluation.all.metrics[0].value[kNdcg];
    if (value > best.valid) {
      best.valid = value;
      best.best_epoch = epoch;
      best.embeddings = std::move(embeddings);
    } else if (options.patience > 0 && epoch - best.best_epoch >= options.patience) {
      log_info(
          fmt::format("stopped early after epoch {}: NDCG@10 did not improve in {}; the best "
                      "was {:.4f} at epoch {}",
                      epoch, counted(options.patience, "validation"), best.valid, best.best_epoch));
      break;
    }
    progress.note(fmt::format("NDCG@10 {:.4f}, best {:.4f}, epoch {}", value, best.valid, epoch));
  }
  progress.finish();
  if (!validates) {
    best.embeddings = factorizer.embeddings();
    best.best_epoch = best.epochs;
    best.valid = 0;
  }
  return best;
}

}  // namespace cfaa
