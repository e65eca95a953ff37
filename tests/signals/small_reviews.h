#pragma once

// A small domain in memory whose reviews talk about what its items have in common.

#include <memory>
#include <string>
#include <vector>

#include "host/signals/signal.h"

namespace cfaa::test {

struct SmallReviews {
  Domain domain;
  std::vector<std::string> texts;  // of the training rows
  std::vector<float> sums;         // (rows, kWidth)
  std::vector<int32_t> counts;
  static constexpr int64_t kWidth = 3;

  // User u likes items of its own kind (u % 3) and a few others; every fifth row is a dislike.
  SmallReviews(int64_t users, int64_t items) {
    domain.name = "target";
    for (int64_t u = 0; u < users; ++u) domain.users.append("u" + std::to_string(1000 + u));
    for (int64_t i = 0; i < items; ++i) domain.items.append("i" + std::to_string(1000 + i));
    for (int64_t u = 0; u < users; ++u) {
      for (int64_t i = 0; i < items; ++i) {
        const int64_t draw = (u * 131 + i * 71 + u * i * 17) % 97;
        if (draw < (u % 3 == i % 3 ? 40 : 8)) add(u, i, draw % 5 == 4 ? 0.0f : 1.0f);
      }
    }
  }

  void add(int64_t user, int64_t item, float label) {
    domain.train.user.push_back(static_cast<int32_t>(user));
    domain.train.item.push_back(static_cast<int32_t>(item));
    domain.train.label.push_back(label);
    domain.train.rating.push_back(label > 0 ? 5 : 1);
    domain.train.time.push_back(0);
    texts.push_back("kind" + std::to_string(item % 3) + " maker" + std::to_string(item % 5) +
                    " writer" + std::to_string(user % 4));
    for (int64_t q = 0; q < kWidth; ++q) {
      sums.push_back(static_cast<float>((item * (q + 2) + user) % 7) - 3);
    }
    counts.push_back(static_cast<int32_t>(1 + item % 2));
  }

  void remove(std::size_t row) {
    const auto erase = [row](auto& values, std::size_t width) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * width);
      values.erase(begin, begin + static_cast<std::ptrdiff_t>(width));
    };
    erase(domain.train.user, 1);
    erase(domain.train.item, 1);
    erase(domain.train.label, 1);
    erase(domain.train.rating, 1);
    erase(domain.train.time, 1);
    erase(texts, 1);
    erase(sums, kWidth);
    erase(counts, 1);
  }

  // Points into this object.
  ReviewedDomain read(ThreadPool& threads) const {
    const ReviewTexts source[] = {
        {static_cast<int64_t>(texts.size()),
         [this](int64_t r) -> std::string_view { return texts[static_cast<std::size_t>(r)]; }}};
    ReviewVocabulary vocabulary = read_review_terms(threads, source);
    ReviewedDomain reviewed;
    reviewed.domain = &domain;
    reviewed.terms = std::move(vocabulary.domains[0]);
    reviewed.vocabulary = static_cast<int64_t>(vocabulary.terms.size());
    reviewed.vectors = {kWidth, sums, counts};
    return reviewed;
  }
};

inline const std::vector<SignalName>& every_signal() {
  static const std::vector<SignalName> names = [] {
    std::vector<SignalName> all;
    for (int s = 0; s < kSignalNames; ++s) all.push_back(static_cast<SignalName>(s));
    return all;
  }();
  return names;
}

}  // namespace cfaa::test
