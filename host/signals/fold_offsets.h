#pragma once

// What weighed signals say of pairs that they have not seen, as a logit: the offset in the loss of
// a model that learns what the signals leave over. With s(u, i) the weighed sum, divided by the
// square root of the number of items that u liked (as weights are fitted),
//
//   offset(u, i) = s(u, i) - log mean_j exp(s(u, j))
//
// over the items j that u does not have, or 1000 of them, evenly spaced. The mean makes a
// calibrated logit of s where a positive is told from one item drawn at random; a pairwise loss
// does not see it.
//
// A pair is scored for a training row: by signals, scales and histories of the folds other than the
// row's (host/signals/out_of_fold.h), so that neither the row's label nor its text is in them.

#include <cstdint>
#include <span>
#include <vector>

#include "host/core/context.h"
#include "host/signals/out_of_fold.h"

namespace cfaa {

class FoldOffsets {
 public:
  // weights (names) are those of the scaled signals, as fit_listwise finds them. Nothing of the
  // arguments is needed afterwards.
  FoldOffsets(Context& context, const ReviewedDomain& reviewed, std::span<const SignalName> names,
              std::span<const double> weights, const SignalOptions& options,
              const FoldOptions& folds);

  // Of training row `row`'s user and some items, in the row's fold. From any thread.
  void fill(int64_t row, std::span<const int32_t> items, double* offsets) const;

 private:
  // The sums of host/signals/signal_scores.h, both factors by rows.
  struct Fold {
    SparseRows of_user, of_item;
    int64_t dim = 0;
    std::vector<float> user_factors, item_factors;
    std::vector<double> user_scale, log_mean;  // (users)

    double sum(int32_t user, int32_t item) const;
    double log_mean_exp(const Evidence& evidence, int32_t user) const;
  };

  std::vector<int32_t> user_, fold_;  // of the training rows
  std::vector<Fold> made_;
};

// 1 / sqrt(liked items) of each user, of whom no item liked counts as one.
std::vector<double> history_scale(const SparseRows& liked);

}  // namespace cfaa
