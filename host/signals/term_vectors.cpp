#include "host/signals/term_vectors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/core/error.h"

namespace cfaa {
namespace {

constexpr int64_t kFewestItems = 3;
constexpr int64_t kGrain = 32;  // items or users at a time

// The used reviews of each item (or user), in the order of the rows.
struct ReviewsOf {
  std::vector<int64_t> offset;
  std::vector<int32_t> review;

  ReviewsOf(int64_t owners, std::span<const int32_t> owner, std::span<const char> used)
      : offset(static_cast<std::size_t>(owners) + 1) {
    const auto counts = [&](std::size_t row) { return used.empty() || used[row] != 0; };
    for (std::size_t row = 0; row < owner.size(); ++row) {
      if (counts(row)) ++offset[static_cast<std::size_t>(owner[row]) + 1];
    }
    std::partial_sum(offset.begin(), offset.end(), offset.begin());
    review.resize(static_cast<std::size_t>(offset.back()));
    std::vector<int64_t> next(offset.begin(), offset.end() - 1);
    for (std::size_t row = 0; row < owner.size(); ++row) {
      if (!counts(row)) continue;
      review[static_cast<std::size_t>(next[static_cast<std::size_t>(owner[row])]++)] =
          static_cast<int32_t>(row);
    }
  }

  int64_t owners() const { return static_cast<int64_t>(offset.size()) - 1; }
};

struct TermCount {
  int32_t term, reviews;
};

// The terms of every owner with the number of its reviews that have them, ascending.
std::vector<std::vector<TermCount>> count_terms(ThreadPool& threads, const ReviewTerms& reviews,
                                                int64_t terms, const ReviewsOf& owned) {
  std::vector<std::vector<TermCount>> counted(static_cast<std::size_t>(owned.owners()));
  std::vector<std::vector<int32_t>> scratch(static_cast<std::size_t>(threads.threads()));
  threads.parallel_for(owned.owners(), kGrain, [&](int64_t begin, int64_t end, int worker) {
    std::vector<int32_t>& count = scratch[static_cast<std::size_t>(worker)];
    count.resize(static_cast<std::size_t>(terms));
    std::vector<int32_t> met;
    for (int64_t o = begin; o < end; ++o) {
      met.clear();
      for (int64_t r = owned.offset[static_cast<std::size_t>(o)];
           r < owned.offset[static_cast<std::size_t>(o) + 1]; ++r) {
        for (const int32_t term : reviews.of(owned.review[static_cast<std::size_t>(r)])) {
          if (count[static_cast<std::size_t>(term)]++ == 0) met.push_back(term);
        }
      }
      std::sort(met.begin(), met.end());
      auto& of_owner = counted[static_cast<std::size_t>(o)];
      of_owner.reserve(met.size());
      for (const int32_t term : met) {
        of_owner.push_back({term, count[static_cast<std::size_t>(term)]});
        count[static_cast<std::size_t>(term)] = 0;
      }
    }
  });
  return counted;
}

SparseRows weigh(ThreadPool& threads, const std::vector<std::vector<TermCount>>& counted,
                 std::span<const double> inverse_frequency) {
  std::vector<std::vector<SparseEntry>> rows(counted.size());
  threads.parallel_for(
      static_cast<int64_t>(counted.size()), kGrain, [&](int64_t begin, int64_t end, int) {
        std::vector<double> weight;
        for (int64_t o = begin; o < end; ++o) {
          const auto& terms = counted[static_cast<std::size_t>(o)];
          weight.clear();
          double square = 0;
          for (const TermCount& t : terms) {
            const double w =
                (1 + std::log(t.reviews)) * inverse_frequency[static_cast<std::size_t>(t.term)];
            weight.push_back(w);
            square += w * w;
          }
          const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
          for (std::size_t e = 0; e < terms.size(); ++e) {
            if (weight[e] == 0) continue;
            rows[static_cast<std::size_t>(o)].push_back(
                {terms[e].term, static_cast<float>(weight[e] * scale)});
          }
        }
      });
  return join_rows(static_cast<int64_t>(inverse_frequency.size()), rows);
}

}  // namespace

TermVectors make_term_vectors(ThreadPool& threads, const ReviewTerms& reviews, int64_t terms,
                              const ReviewRows& rows) {
  CFAA_ASSERT(reviews.reviews() == static_cast<int64_t>(rows.item.size()));
  const auto of_items =
      count_terms(threads, reviews, terms, ReviewsOf(rows.items, rows.item, rows.used));
  std::vector<int64_t> frequency(static_cast<std::size_t>(terms));
  for (const auto& item : of_items) {
    for (const TermCount& t : item) ++frequency[static_cast<std::size_t>(t.term)];
  }
  std::vector<double> inverse_frequency(frequency.size());
  for (std::size_t t = 0; t < frequency.size(); ++t) {
    if (frequency[t] < kFewestItems || 2 * frequency[t] > rows.items) continue;
    inverse_frequency[t] =
        std::log(static_cast<double>(rows.items) / static_cast<double>(frequency[t]));
  }
  const auto of_users =
      count_terms(threads, reviews, terms, ReviewsOf(rows.users, rows.user, rows.used));
  return {weigh(threads, of_items, inverse_frequency), weigh(threads, of_users, inverse_frequency),
          inverse_frequency};
}

SparseRows later_term_vectors(ThreadPool& threads, const ReviewTerms& reviews, int64_t owners,
                              std::span<const int32_t> owner,
                              std::span<const double> inverse_frequency) {
  CFAA_ASSERT(reviews.reviews() == std::ssize(owner));
  const auto counted =
      count_terms(threads, reviews, std::ssize(inverse_frequency), ReviewsOf(owners, owner, {}));
  return weigh(threads, counted, inverse_frequency);
}

}  // namespace cfaa
