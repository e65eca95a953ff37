#pragma once

// The distinct terms of every training review of one or more domains, as numbers of one joint
// vocabulary. Made once; whatever is counted from some of the reviews (host/signals/term_vectors.h)
// starts here. Terms are numbered in the order of their bytes, so that nothing depends on threads.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/parallel.h"
#include "host/text/string_index.h"

namespace cfaa {

// Of one domain: review r is row r of its training split.
struct ReviewTerms {
  std::vector<int64_t> offset = {0};  // (reviews + 1)
  std::vector<int32_t> term;          // each of a review once

  int64_t reviews() const { return static_cast<int64_t>(offset.size()) - 1; }
  std::span<const int32_t> of(int64_t review) const {
    const auto r = static_cast<std::size_t>(review);
    return std::span(term).subspan(static_cast<std::size_t>(offset[r]),
                                   static_cast<std::size_t>(offset[r + 1] - offset[r]));
  }
};

struct ReviewVocabulary {
  std::vector<std::string> terms;    // ascending
  std::vector<ReviewTerms> domains;  // as many as were given
};

// The reviews of one domain, from any thread.
struct ReviewTexts {
  int64_t count = 0;
  std::function<std::string_view(int64_t)> text;
};

// A term that fewer than `least` reviews of every domain have is left out: no choice of reviews can
// bring it over a limit that high.
ReviewVocabulary read_review_terms(ThreadPool& threads, std::span<const ReviewTexts> domains,
                                   int64_t least = 3);

// The terms of texts that were not there when the vocabulary was made; words outside of it are
// passed over. From any thread.
class KnownTerms {
 public:
  explicit KnownTerms(const std::vector<std::string>& terms);

  ReviewTerms read(std::span<const std::string_view> texts) const;

 private:
  StringIndex number_;
};

}  // namespace cfaa
