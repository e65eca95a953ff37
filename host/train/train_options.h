#pragma once

// How the model is trained: the `train` section of the configuration, by its keys.

#include <cstdint>
#include <string>

#include "host/core/options.h"
#include "host/model/cfaa.h"

namespace cfaa {

enum class Supervision { negatives, positives, none };
enum class Reduction { mean, sum };
enum class NegativeSampling { uniform, popularity };
enum class EpochLength { target, source, longest };
enum class TrainedDomains { both, target };
enum class AlignmentBatch { global, local };
enum class TrainPrecision { f32, tf32, bf16, f64 };

struct TrainOptions {
  TrainedDomains domains = TrainedDomains::both;
  int64_t epochs = 200;
  int64_t steps = 0;
  int64_t batch_size = 256;
  int64_t parts = 1;  // batches that a step is made of
  AlignmentBatch alignment_batch = AlignmentBatch::global;
  EpochLength epoch = EpochLength::target;
  int64_t seed = 0;
  ScoreLoss loss = ScoreLoss::bce;
  Reduction reduction = Reduction::mean;
  Supervision target_supervision = Supervision::negatives;
  int64_t source_negatives = 1, target_negatives = 4;
  NegativeSampling sampling = NegativeSampling::uniform;
  double sampling_beta = 0.75;
  double learning_rate = 1e-5, embedding_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 1e-4, embedding_decay = 2;
  double max_norm = 0;
  TrainPrecision precision = TrainPrecision::f32;
  int64_t eval_every = 1;
  std::string metric = "NDCG@10";
  int64_t patience = 20, patience_steps = 100, min_steps = 300;
  int64_t log_every = 20;
  int64_t checkpoint_every = 0;
  int64_t keep_checkpoints = 2;
  PhaseOptions phases;

  bool uses(std::size_t domain) const {
    return domain == kTarget || domains == TrainedDomains::both;
  }
  MathMode math() const {
    return precision == TrainPrecision::tf32   ? MathMode::tf32
           : precision == TrainPrecision::bf16 ? MathMode::bf16
                                               : MathMode::fp32;
  }
  // Whether a loss is taken over all parts of a step together.
  bool is_global(const LossTerm& term) const {
    return alignment_batch == AlignmentBatch::global && term.aligns();
  }
  // Negatives of each interaction that a step really draws.
  PerDomain<int64_t> negatives() const {
    return {source_negatives, target_supervision == Supervision::negatives ? target_negatives : 0};
  }
};

OptionSet train_option_set(TrainOptions& options);

}  // namespace cfaa
