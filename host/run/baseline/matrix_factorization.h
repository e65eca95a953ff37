#pragma once

// Matrix factorisation with the pairwise loss of BPR (Rendle et al., UAI '09) on one domain alone:
// score(u, i) = <U_u, V_i>, and for each training positive (u, i) and sampled items j that u did
// not like in training
//
//   L = mean of log(1 + exp(score(u, j) - score(u, i)))
//
// by Adam on the rows that a batch touches. Tables start at N(0, 0.1^2). The epoch with the best
// NDCG@10 on the validation split is kept. The same seed on the same device gives the same bits.

#include "host/core/context.h"
#include "host/data/dataset.h"
#include "host/run/baseline/baselines.h"

namespace cfaa {

struct Factorization {
  DomainEmbeddings embeddings;  // of the best epoch
  int64_t epochs = 0;           // trained
  int64_t best_epoch = 0;       // from 1; the last one where there is nothing to validate on
  double valid = 0;             // NDCG@10 of the best epoch
};

// Error where the domain has no training positive.
Factorization factorize(Context& context, const Domain& domain, const BaselineOptions& options);

}  // namespace cfaa
