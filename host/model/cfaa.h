#pragma once

// The whole model and one step of its training:
//
//   Z = encoder(batch),   L = L_C(scorer(Z)) + sum of the losses on Z, each with its weight
//
// (L_C(scorer(Z) + offset) where the batch has offsets, what signals say of its pairs),
// backward by hand, clipped, Adam. A step may be of several batches, its parts: their gradients are
// added up along a fixed tree, and ranks may divide them (host/model/ranks/part_sums.h). L_C and
// the losses of a part count by 1 / V; L_O and L_A may be taken of all parts' Z together. Nothing
// in a step waits for the device or allocates after the first one: on a GPU it is captured and
// replayed (host/train/step_runner.h).

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/model/batch.h"
#include "host/model/encoder.h"
#include "host/model/loss.h"
#include "host/model/pair_scorer.h"
#include "host/model/phase.h"
#include "host/model/ranks/part_sums.h"
#include "host/model/step_observer.h"

namespace cfaa {

enum class ScoreLoss { bce, bpr };

// What a step found, read back when somebody wants to see it.
struct StepMeasures {
  struct Loss {
    std::string name;
    double weight = 0;  // at this step
    double value = 0;   // without the weight
    double norm = 0;    // of its gradient with respect to Z (or scores), without the weight
    double sign = 1;    // -1 where the embeddings ascend it
  };

  PerDomain<double> score{};      // L_C of each domain
  double score_norm = 0;          // of L_C's gradient with respect to Z
  std::vector<Loss> losses;       // the others, in the step's order
  double gradient_norm = 0;       // of all parameters together, before clipping
  double target_probability = 0;  // mean of sigma(score) over the target's batch

  const Loss& loss(std::string_view name) const;
  double total() const;  // L
};

template <class T>
class Cfaa {
 public:
  // `batch_shape.losses` is how many losses `options` uses.
  Cfaa(Context& context, const ModelOptions& options, const AlignmentOptions& alignment,
       const ModelShape& shape, const BatchShape& batch_shape);

  const ModelOptions& options() const { return options_; }
  Parameters<T>& parameters() { return parameters_; }
  const PairScorer<T>& scorer() const { return *scorer_; }
  const Encoder<T>& encoder() const { return *encoder_; }

  // Tables N(0, table_scale^2), layers by He; then the last layer of each side is scaled so that Z
  // has the standard deviation output_scale on this batch: from there both alignment losses are of
  // the order of one. `tied_start` copies the source's towers to the target's.
  void initialize(Context& context, const Batch<T>& batch, uint64_t seed);

  // Steps from now on have so many parts, divided among the ranks of `group`, which must outlive
  // it. `align_globally`: L_O and L_A are of all parts together. Error where they cannot be
  // divided.
  void divide(Context& context, Group& group, int64_t parts, bool align_globally);
  const PartSums<T>& parts() const { return *parts_; }

  // Steps from now on are those of a phase. What it freezes is not touched, and losses that begin
  // later are not computed.
  void enter(std::size_t index, const Phase& phase);
  // The target's layers become copies of the source's.
  void copy_source(Context& context);

  // How steps solve from now on what the horizontal loss needs; nullopt where no loss needs it.
  void solve_by(Solver solver) { solver_ = solver; }
  std::optional<Solver> solver() const;

  // One step on the batches of this rank's parts, in device memory. A step of several parts is not
  // observed.
  void step(Context& context, std::span<const Batch<T>> batches, ScoreLoss loss, MathMode math,
            StepObserver<T>* observer = nullptr);
  // One step on one batch.
  void step(Context& context, const Batch<T>& batch, ScoreLoss loss, MathMode math,
            StepObserver<T>* observer = nullptr) {
    step(context, std::span(&batch, 1), loss, math, observer);
  }

  // Of the last step, all its parts. Waits for the device, and for the other ranks.
  StepMeasures measures(Context& context, std::span<const Batch<T>> batches) const;

  // Embeddings (R, D) of users or items whose inputs are in `batch` (its `rows` are z's).
  void embed(Context& context, std::size_t domain, std::size_t side, const SideBatch<T>& batch,
             MatrixView<T> z) const;

 private:
  // A part of a loss that one rank computes for all.
  struct Piece {
    std::vector<std::size_t> sides;
    int64_t first, columns;  // of Z
    int64_t part;            // whose rank computes it
    double share;            // factor of its value in the loss
  };
  // A loss and what the last step measured of it: of each part or, where it is taken of all parts
  // together, of each piece.
  struct Term {
    std::unique_ptr<Loss<T>> loss;
    std::size_t phase;               // the first in which it counts
    std::vector<Piece> pieces;       // none: it is taken of each part
    Tensor<T, 1> value;              // (own parts) or (pieces)
    Tensor<double, 1> squared_norm;  // (own parts) or (1)
  };
  // What the last step measured of a part's L_C.
  struct PartScore {
    Tensor<T, 1> loss;       // (2) of the source, of the target
    Tensor<double, 1> norm;  // (1) squared
    Tensor<T, 1> score;      // (all rows)
  };

  // Told of every part that is done.
  using Done = std::function<void(const std::string& part)>;

  // The parts of a step, each from what the ones before left in `arrays`.
  void run_encoder(Context& context, const Batch<T>& batch, const StepState* state, MathMode math,
                   StepArrays<T>& arrays);
  void run_scorer(Context& context, const Batch<T>& batch, ScoreLoss loss, MathMode math,
                  StepArrays<T>& arrays, const Done& done);
  void run_score_losses(Context& context, const Batch<T>& batch, MathMode math,
                        StepArrays<T>& arrays, const Done& done);
  // The losses of embeddings: they read Z and write gradients of their own.
  struct ComputedLoss {
    const Term* term;
    const double* weight;
    LossInput<T> input;
    MatrixView<T> gradient;
  };
  void run_losses(Context& context, const Batch<T>& batch, MathMode math, bool beside,
                  StepArrays<T>& arrays, const Done& done);
  ComputedLoss compute_loss(Context& context, std::size_t index, const Batch<T>& batch,
                            MathMode math, const StepArrays<T>& arrays);
  void add_loss(Context& context, const ComputedLoss& computed, StepArrays<T>& arrays,
                const Done& done);
  void run_divided_losses(Context& context, std::span<const Batch<T>> batches, MathMode math,
                          std::vector<StepArrays<T>>& arrays);
  PerDomain<PerSide<MatrixView<T>>> gather_z(Context& context,
                                             const std::vector<StepArrays<T>>& arrays) const;
  void run_pieces(Context& context, Term& term, const PerDomain<PerSide<MatrixView<T>>>& z,
                  const double* weight, MathMode math, std::vector<StepArrays<T>>& arrays);
  void run_backward(Context& context, const Batch<T>& batch, MathMode math, StepArrays<T>& arrays);
  void update(Context& context, const Batch<T>& batch, const std::vector<StepArrays<T>>& arrays);
  std::vector<Piece> pieces_of(const Loss<T>& loss) const;
  bool counts(const Term& term) const { return term.phase <= phase_index_; }
  void update_group(Context& context, int group, StepState* state,
                    const std::vector<TableGradient<T>>& tables);
  // What a loss reads, its gradients yet to be given.
  LossInput<T> loss_input(const Term& term, const Batch<T>& batch, MathMode math,
                          const StepArrays<T>& arrays) const;
  // Sets to 0 and adds up.
  void measure_norm(Context& context, std::span<const MatrixView<T>> gradients,
                    double* squared_norm) const;
  VectorView<T> domain_rows(VectorView<T> all, std::size_t domain) const;

  void start_parameters(Context& context, uint64_t seed);
  // Whether the target's layers are the source's.
  bool shares_source() const {
    return options_.towers == TowerSharing::shared && batch_shape_.used[kSource];
  }
  // The first rows of z (or dz) that belong to a side of a domain.
  MatrixView<T> tower_rows(MatrixView<T> z, std::size_t domain, std::size_t side,
                           int64_t rows) const;

  ModelOptions options_;
  BatchShape batch_shape_;
  Parameters<T> parameters_;
  std::unique_ptr<Encoder<T>> encoder_;
  std::unique_ptr<PairScorer<T>> scorer_;
  std::unique_ptr<Group> alone_;  // until it is divided
  std::optional<PartSums<T>> parts_;
  std::vector<Term> terms_;
  std::size_t phase_index_ = 0;
  Phase phase_;
  Solver solver_;
  std::vector<PartScore> scores_;  // of each own part
};

}  // namespace cfaa
