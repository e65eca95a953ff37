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

// The ops of the baselines that read words: 4 n reviews of at most 120 words out of 16 n with
// 100 filters of width 3, bags of at most 20 of the reviews, and 200 words of each of n rows; the
// covariances of n rows of d attributes. Gradients are validated by what they must sum to.
template <class T>
std::vector<Case> baseline_cases(Context& context, const Sizes& sizes);

// Whole steps of CFAA (variant full, the default model) by the trainer's own StepRunner, batches
// assembled ahead: on 6,640 n interactions of 484 n users and 195 n items in the source and a
// target of a tenth of that (1.7 million, 124,000 and 50,000 by default) with reviews of 768
// dimensions, broken down by part; and without reviews at 40 n, 400 n and 4,000 n users (about 1e4,
// 1e5, 1e6), which should cost the same. In float, validated against double.
std::vector<Case> step_cases(Context& context, const Sizes& sizes);

// Ranking users for evaluation, 16 n of them over 195 n items (4,096 x 49,920 by default), and the
// bare GEMM of the same products beside it; and by the default MLP scorer, 39 n over 31 n items
// (9,984 x 7,936). In float.
std::vector<Case> ranking_cases(Context& context, const Sizes& sizes);

Peaks measure_peaks(Context& context, const Plan& plan);

}  // namespace cfaa::bench
