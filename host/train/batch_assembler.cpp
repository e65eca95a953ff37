#include "host/train/batch_assembler.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "host/core/error.h"
#include "host/train/permutation.h"

namespace cfaa {
namespace {

// Streams of the random numbers, told apart by their upper bits; the lower ones count batches.
enum Stream : uint64_t {
  kShuffle = uint64_t{1} << 56,
  kNegative = uint64_t{2} << 56,
  kEdge = uint64_t{3} << 56,
  kHistory = uint64_t{4} << 56,
  kReviews = uint64_t{5} << 56,
};

NegativeSampler negative_sampler(const Neighbours& items, const TrainOptions& train) {
  const auto seed = static_cast<uint64_t>(train.seed);
  if (train.sampling == NegativeSampling::uniform) return {seed, items.count()};
  double sum = 0;
  std::vector<double> sums;
  for (int64_t i = 0; i < items.count(); ++i) {
    sum += std::pow(static_cast<double>(items.degree(i)), train.sampling_beta);
    sums.push_back(sum);
  }
  return {seed, std::move(sums)};
}

}  // namespace

ModelShape model_shape(const TrainingData& data) {
  ModelShape shape;
  for (std::size_t d = 0; d < 2; ++d) {
    shape.count[d] = {data.domain(d).users.size(), data.domain(d).items.size()};
    if (data.reviews[d] != nullptr) {
      shape.review_dim = data.reviews[d]->dim();
      for (std::size_t s = 0; s < 2; ++s) shape.reviews[d][s] = data.reviews[d]->arrays(s);
    }
    if (data.texts[d] != nullptr) shape.words[d] = data.texts[d]->vectors_view();
  }
  return shape;
}

template <class T>
BatchAssembler<T>::BatchAssembler(const TrainingData& data, const ModelOptions& model,
                                  const TrainOptions& train, PerDomain<const FoldOffsets*> offsets)
    : data_(data),
      model_(model),
      train_(train),
      offsets_(offsets),
      random_{static_cast<uint64_t>(train.seed)},
      losses_(model.losses.used()) {
  const ModelShape sizes = model_shape(data);
  shape_.n = train.batch_size;
  shape_.negatives = train.negatives();
  shape_.review_dim = model.reads_vectors() ? sizes.review_dim : 0;
  shape_.losses = std::ssize(losses_);
  shape_.groups += std::count_if(losses_.begin(), losses_.end(),
                                 [](const LossTerm& term) { return term.owns_layers(); });
  for (std::size_t d = 0; d < 2; ++d) {
    shape_.used[d] = train.uses(d);
    if (!train.uses(d)) continue;
    shape_.offsets[d] = offsets[d] != nullptr;
    const SplitRows& rows = data.domain(d).train;
    // Without supervision a row only brings its user and item, and needs no label.
    const bool any = d == kTarget && train.target_supervision == Supervision::none;
    for (std::size_t r = 0; r < rows.user.size(); ++r) {
      if (any || rows.has_label(r)) rows_[d].push_back(static_cast<int32_t>(r));
    }
    if (rows_[d].empty()) {
      throw Error(
          data.domain(d).path.string() +
          ": has no training interaction with a label; `cfaa_gpu stats` shows what is there");
    }
    for (std::size_t s = 0; s < 2; ++s) {
      if (model.has("id")) shape_.id_rows[d][s] = sizes.count[d][s];
      if (model.has("history")) shape_.history_rows[d][s] = sizes.history_rows(model, d, s);
      id_rows_[d][s] = TouchedRowLister(shape_.id_rows[d][s]);
      history_rows_[d][s] = TouchedRowLister(shape_.history_rows[d][s]);
      int64_t most = 0;
      const Neighbours& neighbours = data.neighbours[d][s];
      for (int64_t e = 0; e < neighbours.count(); ++e) most = std::max(most, neighbours.degree(e));
      if (model.history_max > 0) most = std::min(most, model.history_max);
      shape_.history_entries = std::max(shape_.history_entries, most);
    }
    if (model.reads_words()) prepare_texts(d);
    negatives_[d] = negative_sampler(data.neighbours[d][kItem], train);
  }
  const int64_t source = std::ssize(rows_[kSource]), target = std::ssize(rows_[kTarget]);
  const int64_t longest = std::max(source, target);
  const int64_t length = train.epoch == EpochLength::target   ? target
                         : train.epoch == EpochLength::source ? source
                                                              : longest;
  const int64_t rows_of_step = train.parts * shape_.n;
  steps_per_epoch_ = (length + rows_of_step - 1) / rows_of_step;
}

template <class T>
void BatchAssembler<T>::prepare_texts(std::size_t domain) {
  const TokenizedReviews& texts = *data_.texts[domain];
  TextShape& shape = shape_.text[domain];
  shape.texts = texts.reviews();
  shape.words = std::ssize(texts.word);
  shape.vocabulary = texts.vocabulary();
  for (int64_t r = 0; r < texts.reviews(); ++r) {
    shape.longest = std::max(shape.longest, texts.length(r));
  }
  const bool memory = model_.encoder == EncoderKind::word_memory;
  if (memory) shape.row_words = std::min(model_.words_row_max, shape.vocabulary);
  for (std::size_t s = 0; s < 2; ++s) {
    texts_[domain][s].emplace(data_.domain(domain), texts, s, model_.history_max);
    if (memory) continue;
    shape.entries = std::max(shape.entries, texts_[domain][s]->entries());
    if (model_.pooling == ReviewPooling::attention) {
      shape.counterparts[s] = data_.neighbours[domain][1 - s].count();
    }
  }
}

template <class T>
void BatchAssembler<T>::fill_state(int64_t number, const Batch<T>& batch) const {
  const int64_t step = number / train_.parts;
  StepState& state = *batch.state;
  state = StepState{};
  state.learning_rate = train_.learning_rate;
  state.beta1 = train_.beta1;
  state.beta2 = train_.beta2;
  state.epsilon = train_.epsilon;
  state.weight_decay = train_.weight_decay;
  state.embedding_rate = train_.embedding_rate;
  state.embedding_decay = train_.embedding_decay;
  state.max_norm = train_.max_norm;
  state.count(step);
  state.draw = static_cast<uint64_t>(number);
  StepState* group = batch.state;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const LossTerm& term = losses_[i];
    // A loss counts from the first step of its phase, and so do its layers' updates.
    const int64_t since = step - train_.phases.first_step(static_cast<std::size_t>(term.phase));
    batch.loss_weight.data[i] = since < 0 ? 0 : term.weight_at(since, steps_per_epoch_);
    if (!train_.is_global(term)) batch.loss_weight.data[i] /= static_cast<double>(train_.parts);
    if (!term.owns_layers()) continue;
    *++group = state;
    group->learning_rate = model_.losses.adversary.learning_rate;
    group->weight_decay = group->max_norm = 0;
    group->count(std::max<int64_t>(since, 0));
  }
}

template <class T>
int32_t BatchAssembler<T>::draw_negative(std::size_t domain, int64_t user, uint64_t index,
                                         uint64_t stream) const {
  const Neighbours& users = data_.neighbours[domain][kUser];
  const auto u = static_cast<std::size_t>(user);
  const auto begin = users.other.begin() + users.offset[u];
  const auto end = users.other.begin() + users.offset[u + 1];
  const auto taken = [&](int32_t item) { return std::binary_search(begin, end, item); };
  return negatives_[domain](index, stream, taken).item;
}

template <class T>
int32_t BatchAssembler<T>::random_edge(std::size_t domain, std::size_t side, int64_t entity,
                                       uint64_t index, uint64_t stream) const {
  const Neighbours& neighbours = data_.neighbours[domain][side];
  const int64_t degree = neighbours.degree(entity);
  if (degree == 0) return -1;
  const auto edge =
      static_cast<int64_t>(random_.below(static_cast<uint64_t>(degree), index, stream));
  return neighbours
      .row[static_cast<std::size_t>(neighbours.offset[static_cast<std::size_t>(entity)] + edge)];
}

template <class T>
void BatchAssembler<T>::choose_pairs(int64_t number, std::size_t domain,
                                     const DomainBatch<T>& batch) {
  const SplitRows& train = data_.domain(domain).train;
  const int64_t n = shape_.n, negatives = shape_.negatives[domain], rows = shape_.rows(domain);
  const int64_t step = number / train_.parts, per_epoch = steps_per_epoch_ * train_.parts;
  const int64_t epoch = number / per_epoch, within = number % per_epoch;
  const uint64_t own = domain == kSource ? 0 : uint64_t{1} << 48;
  const uint64_t at_number = own + static_cast<uint64_t>(number);
  const bool learns = train_.phases[train_.phases.at(step)].learns(domain);
  PerSide<std::vector<Entry>>& entry = entry_[domain];
  for (std::size_t s = 0; s < 2; ++s) entry[s].resize(static_cast<std::size_t>(rows));

  double counted = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t place = within * n + i;
    // An epoch's passes over a short domain are permutations of their own.
    const int64_t all = std::ssize(rows_[domain]), pass = place / all;
    const Permutation shuffled(
        all, random_.seed,
        kShuffle + own + (static_cast<uint64_t>(epoch) << 16) + static_cast<uint64_t>(pass));
    const auto row =
        static_cast<std::size_t>(rows_[domain][static_cast<std::size_t>(shuffled(place % all))]);
    const auto at = static_cast<std::size_t>(i);
    const bool positive = train.label[row] > 0;
    entry[kUser][at] = {train.user[row], static_cast<int32_t>(row)};
    entry[kItem][at] = {train.item[row], static_cast<int32_t>(row)};
    batch.label.data[i] = positive ? T(1) : T(0);
    const bool supervised =
        learns && (domain == kSource || train_.target_supervision != Supervision::none);
    batch.weight.data[i] = supervised && train_.loss == ScoreLoss::bce ? T(1) : T(0);
    counted += batch.weight.data[i];

    for (int64_t j = 0; j < negatives; ++j) {
      const int64_t negative = n + i * negatives + j;
      const auto index = static_cast<uint64_t>(negative);
      const int32_t user = train.user[row];
      const int32_t item = draw_negative(domain, user, index, kNegative + at_number);
      const auto where = static_cast<std::size_t>(negative);
      entry[kUser][where] = {user, random_edge(domain, kUser, user, 2 * index, kEdge + at_number)};
      entry[kItem][where] = {item,
                             random_edge(domain, kItem, item, 2 * index + 1, kEdge + at_number)};
      batch.label.data[negative] = T(0);
      batch.weight.data[negative] = learns && positive ? T(1) : T(0);
      counted += batch.weight.data[negative];
    }
    if (offsets_[domain] != nullptr) fill_offsets(domain, i, batch);
  }
  if (train_.reduction == Reduction::sum || counted == 0) return;
  for (int64_t i = 0; i < rows; ++i) {
    batch.weight.data[i] =
        static_cast<T>(batch.weight.data[i] / (counted * static_cast<double>(train_.parts)));
  }
}

// Of interaction i and its n negatives. An offset is the logit of a positive against one drawn
// item; against n of them it is lower by log n.
template <class T>
void BatchAssembler<T>::fill_offsets(std::size_t domain, int64_t i,
                                     const DomainBatch<T>& batch) const {
  const int64_t negatives = shape_.negatives[domain], first = shape_.n + i * negatives;
  const std::vector<Entry>& entry = entry_[domain][kItem];
  const Entry& positive = entry[static_cast<std::size_t>(i)];
  std::vector<int32_t> items = {positive.entity};
  for (int64_t j = 0; j < negatives; ++j) {
    items.push_back(entry[static_cast<std::size_t>(first + j)].entity);
  }
  std::vector<double> offsets(items.size());
  offsets_[domain]->fill(positive.excluded, items, offsets.data());
  const double drawn = std::log(static_cast<double>(std::max<int64_t>(1, negatives)));
  batch.offset.data[i] = static_cast<T>(offsets[0] - drawn);
  for (int64_t j = 0; j < negatives; ++j) {
    batch.offset.data[first + j] = static_cast<T>(offsets[static_cast<std::size_t>(j) + 1] - drawn);
  }
}

template <class T>
void BatchAssembler<T>::add_history(std::size_t domain, std::size_t side, int64_t epoch,
                                    Entry entry, const EdgeLists<T>& lists, int32_t& entries) {
  const Neighbours& neighbours = data_.neighbours[domain][side];
  const SplitRows& train = data_.domain(domain).train;
  const int64_t degree = neighbours.degree(entry.entity);
  const int64_t begin = neighbours.offset[static_cast<std::size_t>(entry.entity)];
  const int64_t taken = std::min(degree, shape_.history_entries);
  const Permutation sample(std::max<int64_t>(degree, 1), random_.seed,
                           kHistory + (static_cast<uint64_t>(epoch) << 34) +
                               (static_cast<uint64_t>(2 * domain + side) << 32) +
                               static_cast<uint64_t>(entry.entity));
  const int32_t first = entries;
  for (int64_t i = 0; i < taken; ++i) {
    const auto edge = static_cast<std::size_t>(begin + (taken < degree ? sample(i) : i));
    const int32_t row = neighbours.row[edge];
    if (model_.history_exclude_self && row == entry.excluded) continue;
    add_edge(domain, side, neighbours.other[edge], train.label[static_cast<std::size_t>(row)] > 0,
             lists, entries);
  }
  pool_history(lists, first, entries);
}

template <class T>
void BatchAssembler<T>::add_edge(std::size_t domain, std::size_t side, int32_t other, bool liked,
                                 const EdgeLists<T>& lists, int32_t& entries) const {
  int64_t index = other;
  T weight = 1;
  if (!liked && model_.history_labels == HistoryLabels::split) {
    index += data_.neighbours[domain][1 - side].count();
  }
  if (!liked && model_.history_labels == HistoryLabels::signs) weight = -1;
  lists.index.data[entries] = static_cast<int32_t>(index);
  lists.weight.data[entries] = weight;
  ++entries;
}

template <class T>
void BatchAssembler<T>::pool_history(const EdgeLists<T>& lists, int32_t first,
                                     int32_t entries) const {
  if (model_.history_pooling == HistoryPooling::sum || entries == first) return;
  const T share = T(1) / static_cast<T>(entries - first);
  for (int32_t e = first; e < entries; ++e) lists.weight.data[e] *= share;
}

template <class T>
void BatchAssembler<T>::fill_lists(std::size_t domain, std::size_t side, int64_t epoch,
                                   const SideBatch<T>& batch) {
  const std::vector<Entry>& entries = entry_[domain][side];
  const auto rows = static_cast<int32_t>(entries.size());
  if (batch.id.offset.data != nullptr) {
    fill_single_rows(batch.id,
                     [&](int32_t r) { return entries[static_cast<std::size_t>(r)].entity; });
    id_rows_[domain][side].list(batch.id);
  }
  if (batch.history.offset.data != nullptr) {
    int32_t used = 0;
    for (int32_t r = 0; r < rows; ++r) {
      batch.history.offset.data[r] = used;
      add_history(domain, side, epoch, entries[static_cast<std::size_t>(r)], batch.history, used);
    }
    batch.history.offset.data[rows] = used;
    history_rows_[domain][side].list(batch.history);
  }
  if (batch.review.entity.data != nullptr) fill_reviews(domain, side, batch.review);
  if (texts_[domain][side].has_value()) fill_texts(domain, side, epoch, batch.text);
}

template <class T>
void BatchAssembler<T>::fill_reviews(std::size_t domain, std::size_t side,
                                     const ReviewedRows& rows) const {
  for (std::size_t r = 0; r < entry_[domain][side].size(); ++r) {
    const Entry& entry = entry_[domain][side][r];
    const int32_t left_out = model_.review_exclude_self ? entry.excluded : -1;
    rows.entity.data[r] = entry.entity;
    rows.left_out.data[r] = left_out;
    rows.share.data[r] = data_.reviews[domain]->share(side, entry.entity, left_out);
  }
}

template <class T>
void BatchAssembler<T>::fill_texts(std::size_t domain, std::size_t side, int64_t epoch,
                                   const TextBatch<T>& batch) {
  std::vector<Entry> shown = entry_[domain][side];
  if (!model_.review_exclude_self) {
    for (Entry& entry : shown) entry.excluded = -1;
  }
  TextAssembler& texts = *texts_[domain][side];
  if (batch.words.offset.data != nullptr) {
    texts.fill_row_words(shown, shape_.text[domain].row_words, batch);
  }
  if (batch.offset.data != nullptr) {
    texts.fill(shown, random_.seed,
               kReviews + (static_cast<uint64_t>(epoch) << 34) +
                   (static_cast<uint64_t>(2 * domain + side) << 32),
               batch);
  }
}

template <class T>
void BatchAssembler<T>::assemble(int64_t number, const Batch<T>& batch, ThreadPool* threads) {
  const auto share = [&](std::size_t jobs, const auto& job) {
    const auto run = [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) job(static_cast<std::size_t>(i));
    };
    const auto count = static_cast<int64_t>(jobs);
    threads != nullptr ? threads->parallel_for(count, 1, run) : run(0, count, 0);
  };
  fill_state(number, batch);
  share(2, [&](std::size_t d) {
    if (shape_.used[d]) choose_pairs(number, d, batch.domain[d]);
  });

  // The target has more rows: its lists first.
  share(4, [&](std::size_t i) {
    const std::size_t d = i < 2 ? kTarget : kSource, s = i % 2;
    if (shape_.used[d])
      fill_lists(d, s, number / (steps_per_epoch_ * train_.parts), batch.domain[d].side[s]);
  });
}

template <class T>
void BatchAssembler<T>::assemble_entities(std::size_t domain, std::size_t side, int64_t first,
                                          int64_t count, int64_t rows, const SideBatch<T>& batch) {
  CFAA_ASSERT(count >= 1 && count <= rows);
  std::vector<Entry>& entries = entry_[domain][side];
  entries.clear();
  for (int64_t r = 0; r < rows; ++r) {
    entries.push_back({static_cast<int32_t>(first + std::min(r, count - 1)), -1});
  }
  fill_lists(domain, side, 0, batch);
}

template <class T>
int64_t BatchAssembler<T>::later_history_entries(std::span<const LaterEntity> entities) const {
  int64_t most = 0;
  for (const LaterEntity& entity : entities) most = std::max(most, std::ssize(entity.history));
  return model_.history_max > 0 ? std::min(most, model_.history_max) : most;
}

template <class T>
void BatchAssembler<T>::assemble_later(std::size_t domain, std::size_t side,
                                       std::span<const LaterEntity> all, int64_t first_entity,
                                       int64_t count, int64_t rows, const SideBatch<T>& batch) {
  CFAA_ASSERT(count >= 1 && count <= rows && !model_.reads_words());
  const auto entities =
      all.subspan(static_cast<std::size_t>(first_entity), static_cast<std::size_t>(count));
  const int64_t most = later_history_entries(all);
  if (batch.id.offset.data != nullptr) {
    std::fill_n(batch.id.offset.data, rows + 1, 0);
    id_rows_[domain][side].list(batch.id);
  }
  int32_t used = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const LaterEntity& entity = entities[static_cast<std::size_t>(std::min(r, count - 1))];
    if (batch.history.offset.data != nullptr) {
      const int64_t degree = std::ssize(entity.history), taken = std::min(degree, most);
      // The number that one more entity would have, whichever of them it is.
      const Permutation sample(std::max<int64_t>(degree, 1), random_.seed,
                               kHistory + (static_cast<uint64_t>(2 * domain + side) << 32) +
                                   static_cast<uint64_t>(data_.neighbours[domain][side].count()));
      batch.history.offset.data[r] = used;
      const int32_t first = used;
      for (int64_t i = 0; i < taken; ++i) {
        const auto& edge = entity.history[static_cast<std::size_t>(taken < degree ? sample(i) : i)];
        add_edge(domain, side, edge.other, edge.liked, batch.history, used);
      }
      pool_history(batch.history, first, used);
    }
    if (batch.review.entity.data != nullptr) {
      batch.review.entity.data[r] = static_cast<int32_t>(first_entity + std::min(r, count - 1));
      batch.review.left_out.data[r] = -1;
      batch.review.share.data[r] =
          entity.sentences > 0 ? 1.0f / static_cast<float>(entity.sentences) : 0.0f;
    }
  }
  if (batch.history.offset.data == nullptr) return;
  batch.history.offset.data[rows] = used;
  history_rows_[domain][side].list(batch.history);
}

template class BatchAssembler<float>;
template class BatchAssembler<double>;

}  // namespace cfaa
