#pragma once

// The four towers, source and target by user and item:  Z = G(E + C + H), side by side
//
//   E   the id's own row of a table                     embedding_bag of one
//   C   the history: rows of F over what the user (item) interacted with in training, pooled
//   H   the review vector, and a column that is 1 where there is none
//   G   linear layers with ReLU and dropout between them; the last one is linear, so that no column
//       of Z can die
//
// Shapes are equal, so each layer of all four is one grouped product.

#include <span>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/math_mode.h"
#include "host/model/batch.h"
#include "host/model/model_options.h"
#include "host/model/parameters.h"

namespace cfaa {

struct ModelShape {
  PerDomain<PerSide<int64_t>> count{};  // users and items of each domain
  int64_t review_dim = 0;               // 0 where `inputs` has no review
  PerDomain<bool> used = {true, true};  // the others have no towers

  // Rows of a side's history table: a user's history is of items, an item's of users.
  int64_t history_rows(const ModelOptions& options, std::size_t domain, std::size_t side) const;
};

// What one tower read and computed; lives in the arena.
template <class T>
struct TowerRun {
  std::size_t domain = 0, side = 0;
  MatrixView<T> x;                    // (R, input)
  std::vector<MatrixView<T>> hidden;  // (R, layer) each, after ReLU and dropout
  MatrixView<T> z;                    // (R, D), rows may be padded
};

// The gradient of a table's touched rows; lives in the arena.
template <class T>
struct TableGradient {
  int table;  // of Parameters
  TouchedRows<T> touched;
  MatrixView<T> gradient;  // (capacity, columns), the first touched.count rows
};

template <class T>
class Towers {
 public:
  Towers(Context& context, const ModelOptions& options, const ModelShape& shape,
         Parameters<T>& parameters);

  // Not where every input passes them by: Z is then a sum of rows.
  bool has_layers() const { return skipped_ < input_dim_; }

  // Takes x and hidden from the arena. `forward` writes z (adds to it where there are no layers);
  // with `state`, dropout is applied.
  TowerRun<T> prepare(Context& context, std::size_t domain, std::size_t side,
                      const SideBatch<T>& batch, MatrixView<T> z) const;
  void forward(Context& context, std::span<const TowerRun<T>> runs, const StepState* state,
               MathMode math) const;

  // dz, one for each run, is used up. Adds to the layers' gradients and returns the tables'.
  std::vector<TableGradient<T>> backward(Context& context, std::span<const TowerRun<T>> runs,
                                         std::span<const MatrixView<T>> dz, const Batch<T>& batch,
                                         const StepState* state, MathMode math) const;

  // Starts the layers of a tower from random numbers; the tables are started by the model.
  int last_layer(std::size_t domain, std::size_t side) const {
    return tower_[domain][side].weight.back();
  }
  // Weight and bias layers of a tower, first to last.
  const std::vector<int>& weights(std::size_t domain, std::size_t side) const {
    return tower_[domain][side].weight;
  }
  const std::vector<int>& biases(std::size_t domain, std::size_t side) const {
    return tower_[domain][side].bias;
  }

 private:
  struct Tower {
    std::vector<int> weight, bias;
    int id = -1, history = -1;  // tables
  };

  // Sets skipped_ by model.residual; Error where rows that pass the layers are not as wide as z.
  void choose_skipped();
  // The columns of x that the layers read: all but the first `skipped_`, which are added to z.
  MatrixView<T> layers_input(const TowerRun<T>& run) const;

  // dX of the columns that are learned (id and history, first in x).
  void layer_backward(Context& context, std::span<const TowerRun<T>> runs,
                      std::span<const MatrixView<T>> dy, std::span<const MatrixView<T>> dx,
                      std::size_t layer, MathMode math) const;

  const ModelOptions& options_;
  Parameters<T>& parameters_;
  int64_t id_columns_ = 0, history_columns_ = 0, review_columns_ = 0, input_dim_ = 0;
  int64_t skipped_ = 0;
  PerDomain<PerSide<Tower>> tower_;
};

// "source.user", "target.item", ...
std::string tower_name(std::size_t domain, std::size_t side);

}  // namespace cfaa
