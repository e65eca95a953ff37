#pragma once

// Signals of pairs that the signals have not seen. A training row belongs to one of `folds` folds
// by a keyed hash of (user, item); the rows of a fold are scored by signals made from the other
// folds alone, with their own counts, vocabulary, vectors and scales. A weight fitted on such pairs
// is what the signal is worth on new ones; fitted on rows that a signal was made from it would be
// what the signal remembers.

#include <cstdint>
#include <span>
#include <vector>

#include "host/core/context.h"
#include "host/signals/listwise.h"
#include "host/signals/signal.h"

namespace cfaa {

// Signals of one choice of rows, each with its spread.
struct ScaledSignals {
  Evidence evidence;
  std::vector<Signal> signals;
  std::vector<double> scale;  // f / scale has spread 1 within users' rows; 1 for a constant f
};

ScaledSignals make_scaled_signals(Context& context, const ReviewedDomain& reviewed,
                                  std::span<const SignalName> names, const SignalOptions& options,
                                  std::span<const char> used = {});

// row (signals, items): f_s(user, .) / scale_s.
void scaled_rows(const ScaledSignals& made, int32_t user, double* rows);

struct FoldOptions {
  int64_t folds = 5;
  int64_t candidates = 1000;  // negatives of a user; drawn where the catalogue has more
  int64_t groups = 8000;      // users of a fold at most, over all folds; drawn where there are more
  uint64_t seed = 0;
};

// The fold of every training row, by (user, item) and the seed alone.
std::vector<int32_t> folds_of_rows(const Domain& domain, const FoldOptions& options);

// The positives of rows that no signal was made from, such as the validation split, against the
// items that the user has neither there nor in `made`. Scores are sums over what a user liked and
// grow with it, so features are divided by the square root of the number of items the user liked:
// no list changes, but otherwise the few who liked much would decide the weights.
ListwiseGroups held_out_groups(Context& context, const ReviewedDomain& reviewed,
                               const ScaledSignals& made, const SplitRows& rows,
                               const FoldOptions& options);

// Each training positive in its fold, against the items that the user has in no fold.
// kept (training rows): not 0 counts; empty: all rows do. The rest is as if it were not there.
ListwiseGroups out_of_fold_groups(Context& context, const ReviewedDomain& reviewed,
                                  std::span<const SignalName> names, const SignalOptions& options,
                                  const FoldOptions& folds, std::span<const char> kept = {});

}  // namespace cfaa
