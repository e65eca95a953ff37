#pragma once

// The proxy A-distance (Ben-David et al., NIPS '06): how well a linear classifier tells two sets of
// embeddings apart. Half of each set, drawn at random, trains a logistic classifier on standardised
// attributes; with e its error on the other half,
//
//   distance = max(0, 2 (1 - 2 e))
//
// 0: no better than guessing; 2: always right. Both sets count alike whatever their sizes, in the
// training weights and in e, the mean of the sets' errors.

#include <cstdint>

#include "host/core/context.h"
#include "host/core/view.h"

namespace cfaa {

struct ProxyDistanceOptions {
  int64_t most_rows = 10000;  // of each set, drawn at random beyond that
  int64_t iterations = 300;
  double penalty = 1e-3;  // times half the squared norm of the weights
  uint64_t seed = 0;
};

struct ProxyDistance {
  double error = 0.5, distance = 0;
  int64_t train = 0, held_out = 0;  // rows
};

// source (N_S, D) and target (N_T, D) in host memory, contiguous, finite; at least 2 rows each. The
// same bits for every number of threads.
ProxyDistance proxy_distance(Context& context, MatrixView<const float> source,
                             MatrixView<const float> target,
                             const ProxyDistanceOptions& options = {});

}  // namespace cfaa
