#pragma once

// The four towers, source and target by user and item:  Z = G(E + C + H), side by side
//
//   E   the id's own row of a table                     embedding_bag of one
//   C   the history: rows of F over what the user (item) interacted with in training, pooled
//   H   the review vector, and a column that is 1 where there is none: the layer behind gives that
//       column its own weights, the learned bias of absence
//   G   linear layers with ReLU and dropout between them; the last one is linear, so that no column
//       of Z can die
//
// Shapes are equal, so each layer of all four is one grouped product.

#include <memory>
#include <span>
#include <vector>

#include "host/model/encoder.h"

namespace cfaa {

template <class T>
struct TowerRun final : EncoderRun<T> {
  using EncoderRun<T>::EncoderRun;
  void show(const typename EncoderRun<T>::Show& show) const override;

  MatrixView<T> x;                    // (R, input)
  std::vector<MatrixView<T>> hidden;  // (R, layer) each, after ReLU and dropout
};

template <class T>
class Towers final : public Encoder<T> {
 public:
  Towers(Context& context, const ModelOptions& options, const ModelShape& shape,
         Parameters<T>& parameters);

  std::unique_ptr<EncoderRun<T>> prepare(Context& context, std::size_t domain, std::size_t side,
                                         const SideBatch<T>& batch, MatrixView<T> z) const override;
  void forward(Context& context, EncoderRuns<T> runs, const StepState* state,
               MathMode math) const override;
  std::vector<TableGradient<T>> backward(Context& context, EncoderRuns<T> runs,
                                         std::span<const MatrixView<T>> dz, const Batch<T>& batch,
                                         const StepState* state, MathMode math) const override;
  PlacedSizes review_sizes() const override;
  const EncoderLayers& layers(std::size_t domain, std::size_t side) const override {
    return tower_[domain][side].layers;
  }

 private:
  struct Tower {
    EncoderLayers layers;
    int id = -1, history = -1;  // tables
    ReviewArrays reviews;       // where the device reads them
  };
  static const TowerRun<T>& own(const std::unique_ptr<EncoderRun<T>>& run) {
    return static_cast<const TowerRun<T>&>(*run);
  }

  // Not where every input passes them by: Z is then a sum of rows.
  bool has_layers() const { return skipped_ < input_dim_; }
  void place_reviews(Context& context, const ModelShape& shape);
  // Sets skipped_ by model.residual; Error where rows that pass the layers are not as wide as z.
  void choose_skipped();
  // The columns of x that the layers read: all but the first `skipped_`, which are added to z.
  MatrixView<T> layers_input(const TowerRun<T>& run) const;

  // dX of the columns that are learned (id and history, first in x).
  void layer_backward(Context& context, EncoderRuns<T> runs, std::span<const MatrixView<T>> dy,
                      std::span<const MatrixView<T>> dx, std::size_t layer, MathMode math) const;

  const ModelOptions& options_;
  Parameters<T>& parameters_;
  int64_t id_columns_ = 0, history_columns_ = 0, review_columns_ = 0, input_dim_ = 0;
  int64_t skipped_ = 0;
  PerDomain<PerSide<Tower>> tower_;
  std::vector<std::unique_ptr<PlacedBytes>> placed_;  // what `reviews` of the towers point to
};

}  // namespace cfaa
