#pragma once

// A model as the residual of signals:
//
//   score(u, i) = s(u, i) + beta G_C(z_u, z_i)
//
// s is the weighed sum of signals, its weights fitted before and frozen. In the loss s comes from
// signals that have not seen the row (host/signals/fold_offsets.h), and beta is 1; a ranking has
// the signals of the whole training split, and the beta that validation chose.

#include <memory>
#include <span>
#include <vector>

#include "host/eval/evaluation.h"
#include "host/signals/fold_offsets.h"
#include "host/signals/signal_scores.h"
#include "host/train/trained_model.h"

namespace cfaa {

// What the model is added to, of each domain that it is trained on.
struct ResidualBase {
  PerDomain<const FoldOffsets*> offsets{};
  PerDomain<const SignalScores*> scores{};  // each user's divided as the offsets are
};

// The model's share of the score, and what validation said of each that was tried.
struct ResidualShare {
  // NDCG@10, and how far that is ahead of the signals alone, paired by user.
  struct Tried {
    double beta = 0, valid = 0, ahead = 0, error = 0;
  };
  double beta = 0;
  std::vector<Tried> tried;
};

// Ranks by the sum. `signals` and `embeddings` must outlive it. Lists are the same for every number
// of threads.
std::unique_ptr<Scorer> make_residual_scorer(Context& context, const SignalScores& signals,
                                             const DomainEmbeddings& embeddings,
                                             const ScorerArrays& arrays, double beta);

// The same of anybody's signals, by blocks and by pairs; those functions must stay valid too.
std::unique_ptr<Scorer> make_residual_scorer(Context& context, BlockFunction signals,
                                             PairFunction signal_pairs,
                                             const DomainEmbeddings& embeddings,
                                             const ScorerArrays& arrays, double beta);

// Tries 0, 1/4, 1/2 and 1. The best on validation is taken if it is ahead of the signals alone by
// more than a standard error; otherwise, and without validation, 0.
ResidualShare choose_share(Context& context, const SignalScores& signals,
                           const DomainEmbeddings& embeddings, const ScorerArrays& arrays,
                           const HeldOut& validation);

}  // namespace cfaa
