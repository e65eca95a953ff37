#include "host/signals/term_vectors.h"

#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

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

// A set of terms that is emptied in ascending order: a bit for each term, and a bit for each 64 of
// those that are not all 0.
class TermSet {
 public:
  explicit TermSet(int64_t terms)
      : bits_(static_cast<std::size_t>(terms + 63) / 64), any_((bits_.size() + 63) / 64) {}

  void insert(int32_t term) {
    const auto word = static_cast<std::size_t>(term) / 64;
    bits_[word] |= uint64_t{1} << (term % 64);
    any_[word / 64] |= uint64_t{1} << (word % 64);
  }

  template <class Take>
  void take_all(Take take) {
    for (std::size_t a = 0; a < any_.size(); ++a) {
      for (; any_[a] != 0; any_[a] &= any_[a] - 1) {
        const std::size_t word = 64 * a + static_cast<std::size_t>(std::countr_zero(any_[a]));
        for (; bits_[word] != 0; bits_[word] &= bits_[word] - 1) {
          take(static_cast<int32_t>(64 * word) + std::countr_zero(bits_[word]));
        }
      }
    }
  }

 private:
  std::vector<uint64_t> bits_, any_;
};

// The terms of every owner with the number of its reviews that have them, ascending: of kGrain
// owners one after the other.
struct CountedTerms {
  std::vector<int64_t> size;                   // (owners)
  std::vector<std::vector<TermCount>> chunks;  // (owners / kGrain, up)
};

CountedTerms count_terms(ThreadPool& threads, const ReviewTerms& reviews, int64_t terms,
                         const ReviewsOf& owned) {
  struct Scratch {
    explicit Scratch(int64_t terms) : count(static_cast<std::size_t>(terms)), met(terms) {}
    std::vector<int32_t> count;  // (terms) all 0 between owners
    TermSet met;
    std::vector<TermCount> chunk;
  };
  CountedTerms counted;
  counted.size.resize(static_cast<std::size_t>(owned.owners()));
  counted.chunks.resize(static_cast<std::size_t>((owned.owners() + kGrain - 1) / kGrain));
  std::vector<std::unique_ptr<Scratch>> scratch(static_cast<std::size_t>(threads.threads()));
  threads.parallel_for(owned.owners(), kGrain, [&](int64_t begin, int64_t end, int worker) {
    auto& own = scratch[static_cast<std::size_t>(worker)];
    if (!own) own = std::make_unique<Scratch>(terms);
    own->chunk.clear();
    for (int64_t o = begin; o < end; ++o) {
      const std::size_t before = own->chunk.size();
      for (int64_t r = owned.offset[static_cast<std::size_t>(o)];
           r < owned.offset[static_cast<std::size_t>(o) + 1]; ++r) {
        for (const int32_t term : reviews.of(owned.review[static_cast<std::size_t>(r)])) {
          if (own->count[static_cast<std::size_t>(term)]++ == 0) own->met.insert(term);
        }
      }
      own->met.take_all([&](int32_t term) {
        own->chunk.push_back({term, std::exchange(own->count[static_cast<std::size_t>(term)], 0)});
      });
      counted.size[static_cast<std::size_t>(o)] = static_cast<int64_t>(own->chunk.size() - before);
    }
    counted.chunks[static_cast<std::size_t>(begin / kGrain)] = own->chunk;
  });
  return counted;
}

// 1 + log n, looked up where n is small.
class DampedCount {
 public:
  DampedCount() {
    for (std::size_t n = 1; n < known_.size(); ++n) known_[n] = 1 + std::log(n);
  }
  double operator()(int32_t n) const {
    const auto at = static_cast<std::size_t>(n);
    return at < known_.size() ? known_[at] : 1 + std::log(n);
  }

 private:
  std::array<double, 256> known_{};
};

SparseRows weigh(ThreadPool& threads, const CountedTerms& counted,
                 std::span<const double> inverse_frequency) {
  const auto owners = static_cast<int64_t>(counted.size.size());
  const DampedCount damped;
  // take(owner, its terms) for the owners begin ... end - 1 of one chunk.
  const auto for_each_owner = [&](int64_t begin, int64_t end, auto&& take) {
    const TermCount* terms = counted.chunks[static_cast<std::size_t>(begin / kGrain)].data();
    for (int64_t o = begin; o < end; ++o) {
      const auto size = static_cast<std::size_t>(counted.size[static_cast<std::size_t>(o)]);
      take(static_cast<std::size_t>(o), std::span(terms, size));
      terms += size;
    }
  };
  SparseRows rows;
  rows.columns = static_cast<int64_t>(inverse_frequency.size());
  rows.offset.assign(static_cast<std::size_t>(owners) + 1, 0);
  threads.parallel_for(owners, kGrain, [&](int64_t begin, int64_t end, int) {
    for_each_owner(begin, end, [&](std::size_t o, std::span<const TermCount> terms) {
      int64_t kept = 0;
      for (const TermCount& t : terms) {
        kept += inverse_frequency[static_cast<std::size_t>(t.term)] != 0;
      }
      rows.offset[o + 1] = kept;
    });
  });
  std::partial_sum(rows.offset.begin(), rows.offset.end(), rows.offset.begin());
  rows.column.resize(static_cast<std::size_t>(rows.offset.back()));
  rows.value.resize(rows.column.size());
  threads.parallel_for(owners, kGrain, [&](int64_t begin, int64_t end, int) {
    std::vector<double> weight;
    for_each_owner(begin, end, [&](std::size_t o, std::span<const TermCount> terms) {
      weight.clear();
      double square = 0;
      int32_t* column = rows.column.data() + rows.offset[o];
      for (const TermCount& t : terms) {
        const double frequency = inverse_frequency[static_cast<std::size_t>(t.term)];
        if (frequency == 0) continue;
        const double w = damped(t.reviews) * frequency;
        *column++ = t.term;
        weight.push_back(w);
        square += w * w;
      }
      const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
      float* value = rows.value.data() + rows.offset[o];
      for (const double w : weight) *value++ = static_cast<float>(w * scale);
    });
  });
  return rows;
}

}  // namespace

TermVectors make_term_vectors(ThreadPool& threads, const ReviewTerms& reviews, int64_t terms,
                              const ReviewRows& rows) {
  CFAA_ASSERT(reviews.reviews() == static_cast<int64_t>(rows.item.size()));
  const auto of_items =
      count_terms(threads, reviews, terms, ReviewsOf(rows.items, rows.item, rows.used));
  std::vector<int64_t> frequency(static_cast<std::size_t>(terms));
  for (const auto& chunk : of_items.chunks) {
    for (const TermCount& t : chunk) ++frequency[static_cast<std::size_t>(t.term)];
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
