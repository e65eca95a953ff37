#pragma once

// What users wrote, a sentence at a time, to show beside a list.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/data/dataset.h"
#include "host/data/review_text.h"

namespace cfaa {

inline constexpr int kMostCharacters = 52;  // of a sentence that is shown

// The first sentence of a text that has anything to show, cut to `kMostCharacters`, without control
// characters; "" where there is none. What is not UTF-8 is U+FFFD.
std::string first_sentence(std::string_view text);

// Of a domain's training reviews, their first sentences. From several threads at a time.
class ReviewWords {
 public:
  explicit ReviewWords(const Domain& domain);

  // Of the user's review of the item.
  std::string of(int32_t user, int32_t item) const;
  // Of the first positive review of the item that has text.
  std::string of_item(int32_t item) const;

 private:
  std::string sentence(int64_t row) const;

  const Domain& domain_;
  std::optional<ReviewTextFile> text_;
  // Positive rows by item: those of item i are rows_[offset_[i]] ... rows_[offset_[i + 1] - 1].
  std::vector<std::size_t> offset_, rows_;
};

}  // namespace cfaa
