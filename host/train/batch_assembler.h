#pragma once

// Fills a batch: which interactions, which negatives, what each row's histories and reviews are. A
// batch is a function of the seed and its number alone, so a run can resume anywhere, and threads
// do not matter. Batch b is part b mod V of step b / V, V being train.parts: where a step has one
// part, batches and steps are the same.
//
// Step by step an epoch goes through a random permutation of the interactions; a domain that runs
// out starts a fresh permutation. Nothing that is to be predicted is given away: the interaction of
// a row is left out of both histories and both review means. For a sampled negative one random
// interaction of the user and one of the item are left out, or a history's length would tell the
// label.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "host/core/context.h"
#include "host/model/batch.h"
#include "host/model/encoder.h"
#include "host/model/model_options.h"
#include "host/signals/fold_offsets.h"
#include "host/train/negative_sampler.h"
#include "host/train/neighbours.h"
#include "host/train/review_vectors.h"
#include "host/train/text_assembler.h"
#include "host/train/touched_rows.h"
#include "host/train/train_options.h"

namespace cfaa {

// What a model is trained on.
struct TrainingData {
  const Dataset& dataset;
  PerDomain<PerSide<Neighbours>> neighbours;
  PerDomain<std::unique_ptr<ReviewVectors>> reviews;     // null where no vectors are read
  PerDomain<std::unique_ptr<TokenizedReviews>> texts{};  // null where no words are read

  const Domain& domain(std::size_t d) const {
    return d == kSource ? dataset.source : dataset.target;
  }
};

ModelShape model_shape(const TrainingData& data);

// A user or an item that training never saw: what is known of it in the terms of its domain.
struct LaterEntity {
  struct Edge {
    int32_t other = 0;  // a row of the other side
    bool liked = true;
  };
  std::vector<Edge> history;  // by `other`
  std::vector<float> review;  // (review_dim) the sum over its reviews' sentences
  int64_t sentences = 0;
};

template <class T>
class BatchAssembler {
 public:
  // `offsets`: of the domains whose scores have one; they must outlive it.
  BatchAssembler(const TrainingData& data, const ModelOptions& model, const TrainOptions& train,
                 PerDomain<const FoldOffsets*> offsets = {});

  const BatchShape& shape() const { return shape_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t count(std::size_t domain, std::size_t side) const {
    return data_.neighbours[domain][side].count();
  }

  // A batch in host memory, with its state and the losses' weights. `threads`, which nobody else
  // uses meanwhile, share the work.
  void assemble(int64_t number, const Batch<T>& batch, ThreadPool* threads = nullptr);

  // Inputs of the entities first ... first + count - 1 with all they have, for evaluation; `rows`
  // of the side's arrays beyond them repeat the last.
  void assemble_entities(std::size_t domain, std::size_t side, int64_t first, int64_t count,
                         int64_t rows, const SideBatch<T>& batch);

  // The same of entities first ... first + count - 1 of some that training never saw: no row of an
  // id table is theirs. `batch` has room for later_history_entries(all) of each, and its rows of
  // reviews count from the first of all. Not where words are read.
  void assemble_later(std::size_t domain, std::size_t side, std::span<const LaterEntity> all,
                      int64_t first, int64_t count, int64_t rows, const SideBatch<T>& batch);
  int64_t later_history_entries(std::span<const LaterEntity> entities) const;

 private:
  using Entry = BatchEntry;

  void fill_state(int64_t number, const Batch<T>& batch) const;
  void choose_pairs(int64_t number, std::size_t domain, const DomainBatch<T>& batch);
  void fill_offsets(std::size_t domain, int64_t i, const DomainBatch<T>& batch) const;
  void fill_lists(std::size_t domain, std::size_t side, int64_t epoch, const SideBatch<T>& batch);
  void fill_reviews(std::size_t domain, std::size_t side, const ReviewedRows& rows) const;
  void add_history(std::size_t domain, std::size_t side, int64_t epoch, Entry entry,
                   const EdgeLists<T>& lists, int32_t& entries);
  void add_edge(std::size_t domain, std::size_t side, int32_t other, bool liked,
                const EdgeLists<T>& lists, int32_t& entries) const;
  void pool_history(const EdgeLists<T>& lists, int32_t first, int32_t entries) const;
  void prepare_texts(std::size_t domain);
  void fill_texts(std::size_t domain, std::size_t side, int64_t epoch, const TextBatch<T>& batch);
  int32_t draw_negative(std::size_t domain, int64_t user, uint64_t index, uint64_t stream) const;
  int32_t random_edge(std::size_t domain, std::size_t side, int64_t entity, uint64_t index,
                      uint64_t stream) const;

  const TrainingData& data_;
  const ModelOptions& model_;
  const TrainOptions& train_;
  PerDomain<const FoldOffsets*> offsets_;
  BatchShape shape_;
  int64_t steps_per_epoch_ = 0;
  Philox random_;
  std::vector<LossTerm> losses_;
  PerDomain<NegativeSampler> negatives_;
  PerDomain<std::vector<int32_t>> rows_;  // training rows that a batch is drawn from
  PerDomain<PerSide<std::vector<Entry>>> entry_;
  PerDomain<PerSide<TouchedRowLister>> id_rows_, history_rows_;
  PerDomain<PerSide<std::optional<TextAssembler>>> texts_;  // empty where no words are read
};

}  // namespace cfaa
