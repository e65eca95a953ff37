#pragma once

// TF-IDF vectors of items and users over some of a domain's training reviews. With n(t, i) the
// reviews of item i that have term t, df(t) the items with such a review, I the items:
//
//   weight(t, i) = (1 + log n(t, i)) log(I / df(t))   for 3 <= df(t) <= I / 2,   ||row i|| = 1
//
// and the same for a user's reviews, with the items' df. Terms outside of these limits have no
// entries; an item without any term is a row without entries. Counts, limits and weights come from
// the given reviews alone, so that vectors made without a review know nothing of it.

#include <cstdint>
#include <span>
#include <vector>

#include "host/core/parallel.h"
#include "host/signals/review_terms.h"
#include "host/signals/sparse_rows.h"

namespace cfaa {

struct TermVectors {
  SparseRows items;                       // (items, terms)
  SparseRows users;                       // (users, terms)
  std::vector<double> inverse_frequency;  // (terms) log(I / df(t)); 0 outside of the limits
};

// Reviews that count: their row in the training split, its user and its item.
struct ReviewRows {
  int64_t users = 0, items = 0;
  std::span<const int32_t> user, item;  // (rows of the split)
  std::span<const char> used;           // (rows of the split)  not 0: counts; empty: all count
};

TermVectors make_term_vectors(ThreadPool& threads, const ReviewTerms& reviews, int64_t terms,
                              const ReviewRows& rows);

// Rows of users (or items) who were not counted: review r, of terms of the same vocabulary, is of
// owner[r] < owners. The bits are those that they would have had among the others.
SparseRows later_term_vectors(ThreadPool& threads, const ReviewTerms& reviews, int64_t owners,
                              std::span<const int32_t> owner,
                              std::span<const double> inverse_frequency);

}  // namespace cfaa
