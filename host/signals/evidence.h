#pragma once

// What signals are made from: rows of a domain's training split, with their reviews. Everything a
// signal knows (counts, vocabulary, weights of words, vectors) comes from an Evidence, so that
// signals made from some of the rows know nothing of the others.

#include <cstdint>
#include <span>
#include <vector>

#include "host/core/parallel.h"
#include "host/data/dataset.h"
#include "host/signals/review_terms.h"
#include "host/signals/term_vectors.h"

namespace cfaa {

// Sums of the vectors of each training review's sentences, as `embed` leaves them.
struct ReviewVectorSums {
  int64_t width = 0;                // 0: there are none
  std::span<const float> sums;      // (training rows, width)
  std::span<const int32_t> counts;  // (training rows) sentences
};

// A domain with all that its training reviews say. The domain must outlive it.
struct ReviewedDomain {
  const Domain* domain = nullptr;
  ReviewTerms terms;
  int64_t vocabulary = 0;
  ReviewVectorSums vectors;

  int64_t users() const { return domain->users.size(); }
  int64_t items() const { return domain->items.size(); }
};

// The reviews of the domains' training splits, read into one vocabulary. Error where the texts of a
// domain and its rows do not match.
struct ReviewedDomains {
  std::vector<ReviewedDomain> domains;
  std::vector<std::string> terms;  // the vocabulary
};
ReviewedDomains read_reviewed_domains(ThreadPool& threads, std::span<const Domain* const> domains);

struct Evidence {
  SparseRows liked;   // (users, items)  1 for each positive row
  SparseRows likers;  // (items, users)
  SparseRows known;   // (users, items)  1 for each row with a label, liked or not
  TermVectors text;   // of all reviews, liked or not
  int64_t width = 0;
  std::vector<float> item_vectors;  // (items, width) mean of the sentences' vectors, minus the mean
                                    // over items, of norm 1; 0 for an item without a sentence

  int64_t users() const { return liked.rows(); }
  int64_t items() const { return likers.rows(); }
};

// used (training rows): not 0 counts; empty: all rows count.
Evidence gather_evidence(ThreadPool& threads, const ReviewedDomain& reviewed,
                         std::span<const char> used = {});

}  // namespace cfaa
