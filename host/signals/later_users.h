#pragma once

// Users who were not there when a domain's signals were made, placed as they would be if they had
// been: what a signal has of a user (words, factors) follows from what the user liked and wrote and
// from the items' side alone, to the same bits. Nothing of the items' side changes.

#include <cstdint>
#include <span>
#include <vector>

#include "host/core/context.h"
#include "host/signals/signal.h"

namespace cfaa {

struct LaterUsers {
  SparseRows liked;            // (users, items)  1 for each item liked
  SparseRows words;            // (users, terms)  of `text`; no columns where it is not among them
  int64_t dim = 0;             // of the factors; 0: there are none
  std::vector<float> factors;  // (users, dim)    of `ials`

  int64_t users() const { return liked.rows(); }
  // A user's side of any of the signals.
  SignalUser user(int32_t which) const;
};

// `signals` are made of `evidence` with `options`. Review r of `reviews`, in terms of the same
// vocabulary, was written by user author[r].
LaterUsers place_later_users(Context& context, const Evidence& evidence,
                             std::span<const Signal> signals, const SignalOptions& options,
                             SparseRows liked, const ReviewTerms& reviews,
                             std::span<const int32_t> author);

}  // namespace cfaa
