#pragma once

// The pieces of work that `cfaa_gpu bench` times, at sizes that flags give and the paper's by
// default. Each validates its own result against plain loops in double (bench/reference) before it
// is timed.

#include <memory>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/report.h"
#include "host/ops/alignment_options.h"

namespace cfaa::bench {

struct Sizes {
  int64_t n = 256;  // rows of each set
  int64_t d = 300;  // attributes
  int64_t k = 128;  // typical samples
  AlignmentOptions alignment;
};

// The ops of the alignment losses, forward and backward, on two pairs (users and items).
template <class T>
std::vector<Case> alignment_cases(Context& context, const Sizes& sizes);

// The building blocks: copies, the GEMMs of the model, Cholesky inverses and the batched
// eigensolver.
template <class T>
std::vector<Case> block_cases(Context& context, const Sizes& sizes);

// The ops of a training step around the towers: histories of 5 n rows (a batch and its negatives)
// over 195 n items, their gradient, Adam on the rows touched; and the MLP scorer of evaluation.
template <class T>
std::vector<Case> training_cases(Context& context, const Sizes& sizes);

// Ranking users for evaluation, 16 n of them over 195 n items (4,096 x 49,920 by default), and the
// bare GEMM of the same products beside it. In float.
std::vector<Case> ranking_cases(Context& context, const Sizes& sizes);

Peaks measure_peaks(Context& context, const Plan& plan);

}  // namespace cfaa::bench
