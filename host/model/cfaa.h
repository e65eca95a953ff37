#pragma once

// The whole model and one step of its training:
//
//   Z = towers(batch),   L = L_C(scorer(Z)) + lambda_O L_O(Z) + lambda_A L_A(Z)
//
// backward by hand, clipped, Adam. Nothing in a step waits for the device or allocates after the
// first one: on a GPU it is captured and replayed (host/train/trainer.h).
//
//   base: L_C alone    v: with L_O    h: with L_A    full: with both

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/model/alignment.h"
#include "host/model/batch.h"
#include "host/model/pair_scorer.h"
#include "host/model/towers.h"

namespace cfaa {

enum class ScoreLoss { bce, bpr };

// What a step found, read back when somebody wants to see it.
struct StepReport {
  double score_source = 0, score_target = 0;  // L_C of each domain
  double vertical = 0, horizontal = 0;        // L_O and L_A, without their lambdas
  // Norms of the losses' gradients with respect to Z, without the lambdas; and of all parameters
  // together, before clipping.
  double score_norm = 0, vertical_norm = 0, horizontal_norm = 0, gradient_norm = 0;
  double target_probability = 0;  // mean of sigma(score) over the target's batch
};

// Called with every array of a traced step, by name; see docs/training.md. `rows` names the rows
// of a table's gradient, empty elsewhere.
template <class T>
using Trace = std::function<void(const std::string& name, MatrixView<const T> array,
                                 VectorView<const int32_t> rows)>;

// Called when a part of a step is done, device included: "towers" (inputs and forward), "scorer"
// (forward, L_C, backward), "vertical", "horizontal", "backward" (of the towers), "update".
using PartDone = std::function<void(const char* part)>;

template <class T>
class Cfaa {
 public:
  Cfaa(Context& context, const ModelOptions& options, const AlignmentOptions& alignment,
       const ModelShape& shape, const BatchShape& batch_shape);

  const ModelOptions& options() const { return options_; }
  Parameters<T>& parameters() { return parameters_; }
  const PairScorer<T>& scorer() const { return scorer_; }

  // Tables N(0, table_scale^2), layers by He; then the last layer of each tower is scaled so that Z
  // has the standard deviation output_scale on this batch: from there both alignment losses are of
  // the order of one. `tied_start` copies the source's towers to the target's.
  void initialize(Context& context, const Batch<T>& batch, uint64_t seed);

  // One step on a batch in device memory. With `trace` or `done`, calls it (and waits for the
  // device).
  void step(Context& context, const Batch<T>& batch, ScoreLoss loss, MathMode math,
            const Trace<T>* trace = nullptr, const PartDone* done = nullptr);

  // Waits for the device.
  StepReport report(Context& context, const Batch<T>& batch) const;

  // Embeddings (R, D) of users or items whose inputs are in `batch` (its `rows` are z's).
  void embed(Context& context, std::size_t domain, std::size_t side, const SideBatch<T>& batch,
             MatrixView<T> z) const;

 private:
  struct Forward {
    std::vector<TowerRun<T>> runs;  // source user, source item, target user, target item
    MatrixView<T> z;                // (all rows, 2 D), users in the left half
  };
  Forward forward(Context& context, const Batch<T>& batch, const StepState* state, MathMode math);
  void align(Context& context, const Batch<T>& batch, MatrixView<T> z, MatrixView<T> dz,
             const Trace<T>* trace, const PartDone* done);
  void update(Context& context, const Batch<T>& batch, const std::vector<TableGradient<T>>& tables);
  MatrixView<T> tower_rows(MatrixView<T> z, std::size_t domain, std::size_t side,
                           int64_t rows) const;

  ModelOptions options_;
  BatchShape batch_shape_;
  Parameters<T> parameters_;
  Towers<T> towers_;
  PairScorer<T> scorer_;
  std::vector<std::unique_ptr<AlignmentLoss<T>>>
      alignment_;            // [0] vertical, [1] horizontal or null
  Tensor<T, 1> losses_;      // source, target, vertical, horizontal
  Tensor<double, 1> norms_;  // squared: scores, vertical, horizontal
  Tensor<T, 1> score_;       // (all rows)
};

}  // namespace cfaa
