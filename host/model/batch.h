#pragma once

// The inputs of one training step, as flat arrays in one piece of memory: the host fills a batch,
// one copy takes it to the device, and a replayed CUDA graph finds it at the same addresses.
//
// Each domain has rows = N + N n pairs (user, item): the N interactions of the batch, then the n
// negatives of the first, of the second, and so on. The alignment losses read the first N rows.

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/core/view.h"
#include "host/ops/embedding_bag.h"
#include "host/ops/step_state.h"

namespace cfaa {

// Indices of arrays over the domains and over the sides of a pair.
inline constexpr int kSource = 0, kTarget = 1;
inline constexpr int kUser = 0, kItem = 1;

template <class T>
using PerDomain = std::array<T, 2>;
template <class T>
using PerSide = std::array<T, 2>;

// What decides the sizes. A part of the towers' input that is not used has table rows 0.
struct BatchShape {
  int64_t n = 0;                               // N
  PerDomain<bool> used = {true, true};         // a domain that is not trained on has no rows
  PerDomain<int64_t> negatives{};              // n of each domain
  int64_t history_entries = 0;                 // of one row, at most
  int64_t review_dim = 0;                      // 0: no reviews
  int64_t losses = 0;                          // beside L_C
  int64_t groups = 1;                          // of parameters
  PerDomain<PerSide<int64_t>> id_rows{};       // of the id tables
  PerDomain<PerSide<int64_t>> history_rows{};  // of the history tables

  int64_t rows(std::size_t domain) const { return used[domain] ? n * (1 + negatives[domain]) : 0; }
  int64_t all_rows() const { return rows(kSource) + rows(kTarget); }
};

// Bags of a table's rows, both ways round; see host/ops/embedding_bag.h.
template <class T>
struct EdgeLists {
  VectorView<int32_t> offset, index;
  VectorView<T> weight;
  VectorView<int32_t> touched_count, touched_row, touched_offset, touched_bag;
  VectorView<T> touched_weight;

  Bags<T> bags() const { return {offset, index, weight}; }
  TouchedRows<T> touched() const {
    return {touched_count, touched_row, touched_offset, touched_bag, touched_weight};
  }
};

template <class T>
struct SideBatch {
  EdgeLists<T> id, history;
  // (rows, review_dim + 1): the review vector, or zeros, and in the last column 1 where there is no
  // review left. The layer behind gives that column its own weights: the learned bias of absence.
  MatrixView<float> review;
};

template <class T>
struct DomainBatch {
  PerSide<SideBatch<T>> side;
  VectorView<T> label, weight;  // (rows)
};

template <class T>
struct Batch {
  StepState* state = nullptr;      // (groups) the model's, and those of losses with layers
  VectorView<double> loss_weight;  // (losses) as LossOptions::used() orders them
  PerDomain<DomainBatch<T>> domain;
};

template <class T>
class BatchLayout {
 public:
  explicit BatchLayout(const BatchShape& shape);

  const BatchShape& shape() const { return shape_; }
  std::size_t bytes() const { return bytes_; }

  // The arrays of a batch whose memory begins at `memory`, aligned to 256 bytes.
  Batch<T> at(void* memory) const;

 private:
  BatchShape shape_;
  std::size_t bytes_ = 0;
};

}  // namespace cfaa
