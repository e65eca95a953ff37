#include "host/signals/review_terms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>

#include "host/text/words.h"

namespace cfaa {
namespace {

constexpr int64_t kGrain = 256;  // reviews read at a time

// The first eight bytes of a word, with zeros behind a shorter one. No word has a byte 0, so that a
// head with one at its end is all of its word.
uint64_t head_of(std::string_view word) {
  const char* const p = word.data();
  const std::size_t n = word.size();
  uint64_t head = 0;
  if (n >= 8) {
    std::memcpy(&head, p, 8);
  } else if (n >= 4) {  // two loads that overlap
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    head = low | uint64_t{high} << (8 * (n - 4));
  } else {
    for (std::size_t i = 0; i < n; ++i) head |= uint64_t{static_cast<uint8_t>(p[i])} << (8 * i);
  }
  return head;
}

// Strings to numbers in order of first appearance; grows. Nearly all words are found in one cache
// line: a slot holds the word's head, and only words of eight bytes and more are compared further.
class WordTable {
 public:
  int32_t number(std::string_view word) {
    if (2 * begin_.size() >= slots_.size()) grow();
    const uint64_t head = head_of(word);
    const uint64_t hash = hash_of(word, head);
    for (std::size_t i = hash;; ++i) {
      Slot& slot = slots_[i & (slots_.size() - 1)];
      if (slot.number < 0) {
        slot = {head, static_cast<int32_t>(begin_.size() - 1)};
        bytes_ += word;
        begin_.push_back(bytes_.size());
        return slot.number;
      }
      if (slot.head == head && (word.size() < 8 || (*this)[slot.number] == word)) {
        return slot.number;
      }
    }
  }

  int32_t size() const { return static_cast<int32_t>(begin_.size()) - 1; }
  std::string_view operator[](int32_t number) const {
    const auto n = static_cast<std::size_t>(number);
    return std::string_view(bytes_).substr(begin_[n], begin_[n + 1] - begin_[n]);
  }

 private:
  struct Slot {
    uint64_t head = 0;
    int32_t number = -1;
  };

  static uint64_t hash_of(std::string_view word, uint64_t head) {
    if (word.size() > 8) return hash_bytes(word);
    const uint64_t product = head * 0x9E3779B97F4A7C15u;
    return product ^ (product >> 32);
  }

  void grow() {
    slots_.assign(slots_.size() * 2, {});
    for (int32_t n = 0; n < size(); ++n) {
      const uint64_t head = head_of((*this)[n]);
      std::size_t i = hash_of((*this)[n], head);
      while (slots_[i & (slots_.size() - 1)].number >= 0) ++i;
      slots_[i & (slots_.size() - 1)] = {head, n};
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1 << 16);  // a power of two, at most half full
  std::string bytes_;
  std::vector<std::size_t> begin_ = {0};
};

// What one thread has read: words by its own numbers.
struct Reader {
  WordTable table;
  WordReader words;
  std::vector<int64_t> seen;                  // (words) the last review that has the word, + 1
  std::vector<std::vector<int32_t>> reviews;  // (domains, words) how many reviews have the word
  std::vector<int32_t> terms;                 // of the chunks it read, one after the other
};

// Where the terms of a chunk of reviews lie.
struct Chunk {
  int reader = 0;
  std::size_t begin = 0;  // in the reader's terms
};

}  // namespace

ReviewVocabulary read_review_terms(ThreadPool& threads, std::span<const ReviewTexts> domains,
                                   int64_t least) {
  const auto workers = static_cast<std::size_t>(threads.threads());
  std::vector<std::unique_ptr<Reader>> readers(workers);
  for (auto& reader : readers) {
    reader = std::make_unique<Reader>();
    reader->reviews.resize(domains.size());
  }

  // Each review's distinct words, by the numbers of whoever reads it.
  ReviewVocabulary result;
  result.domains.resize(domains.size());
  std::vector<std::vector<Chunk>> chunks(domains.size());
  int64_t first_review = 0;  // so that `seen` tells the reviews of all domains apart
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const ReviewTexts& texts = domains[d];
    std::vector<int64_t>& offset = result.domains[d].offset;
    offset.resize(static_cast<std::size_t>(texts.count) + 1);
    chunks[d].resize(static_cast<std::size_t>((texts.count + kGrain - 1) / kGrain));
    threads.parallel_for(texts.count, kGrain, [&](int64_t begin, int64_t end, int worker) {
      Reader& reader = *readers[static_cast<std::size_t>(worker)];
      chunks[d][static_cast<std::size_t>(begin / kGrain)] = {worker, reader.terms.size()};
      for (int64_t r = begin; r < end; ++r) {
        const std::size_t before = reader.terms.size();
        const int64_t mark = first_review + r + 1;
        reader.words.read(texts.text(r), [&](std::string_view word) {
          const int32_t number = reader.table.number(word);
          const auto n = static_cast<std::size_t>(number);
          if (n == reader.seen.size()) {
            reader.seen.push_back(0);
            for (auto& counts : reader.reviews) counts.push_back(0);
          }
          if (reader.seen[n] == mark) return;
          reader.seen[n] = mark;
          ++reader.reviews[d][n];
          reader.terms.push_back(number);
        });
        offset[static_cast<std::size_t>(r) + 1] =
            static_cast<int64_t>(reader.terms.size() - before);
      }
    });
    first_review += texts.count;
  }

  // One table of all, then those that enough reviews have, in the order of their bytes.
  WordTable joint;
  std::vector<std::vector<int32_t>> joint_number(workers);
  std::vector<std::vector<int64_t>> reviews(domains.size());
  for (std::size_t w = 0; w < workers; ++w) {
    const Reader& reader = *readers[w];
    joint_number[w].resize(static_cast<std::size_t>(reader.table.size()));
    for (int32_t n = 0; n < reader.table.size(); ++n) {
      const int32_t number = joint.number(reader.table[n]);
      joint_number[w][static_cast<std::size_t>(n)] = number;
      for (std::size_t d = 0; d < domains.size(); ++d) {
        reviews[d].resize(static_cast<std::size_t>(joint.size()));
        reviews[d][static_cast<std::size_t>(number)] +=
            reader.reviews[d][static_cast<std::size_t>(n)];
      }
    }
  }
  std::vector<int32_t> kept;
  for (int32_t n = 0; n < joint.size(); ++n) {
    const bool frequent = std::any_of(reviews.begin(), reviews.end(), [&](const auto& counts) {
      return counts[static_cast<std::size_t>(n)] >= least;
    });
    if (frequent) kept.push_back(n);
  }
  std::sort(kept.begin(), kept.end(),
            [&joint](int32_t a, int32_t b) { return joint[a] < joint[b]; });
  std::vector<int32_t> final_number(static_cast<std::size_t>(joint.size()), -1);
  result.terms.reserve(kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    final_number[static_cast<std::size_t>(kept[i])] = static_cast<int32_t>(i);
    result.terms.emplace_back(joint[kept[i]]);
  }
  for (auto& numbers : joint_number) {
    for (int32_t& number : numbers) number = final_number[static_cast<std::size_t>(number)];
  }

  // The same reviews in the final numbers: counted first, then written.
  for (std::size_t d = 0; d < domains.size(); ++d) {
    ReviewTerms& domain = result.domains[d];
    const std::vector<int64_t> read(domain.offset);
    const auto for_each_kept = [&](int64_t begin, int64_t end, auto&& take) {
      const Chunk& chunk = chunks[d][static_cast<std::size_t>(begin / kGrain)];
      const int32_t* term =
          readers[static_cast<std::size_t>(chunk.reader)]->terms.data() + chunk.begin;
      const std::vector<int32_t>& numbers = joint_number[static_cast<std::size_t>(chunk.reader)];
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t e = 0; e < read[static_cast<std::size_t>(r) + 1]; ++e) {
          const int32_t number = numbers[static_cast<std::size_t>(*term++)];
          if (number >= 0) take(r, number);
        }
      }
    };
    std::fill(domain.offset.begin(), domain.offset.end(), 0);
    threads.parallel_for(domains[d].count, kGrain, [&](int64_t begin, int64_t end, int) {
      for_each_kept(begin, end,
                    [&](int64_t r, int32_t) { ++domain.offset[static_cast<std::size_t>(r) + 1]; });
    });
    std::partial_sum(domain.offset.begin(), domain.offset.end(), domain.offset.begin());
    domain.term.resize(static_cast<std::size_t>(domain.offset.back()));
    threads.parallel_for(domains[d].count, kGrain, [&](int64_t begin, int64_t end, int) {
      int32_t* out = domain.term.data() + domain.offset[static_cast<std::size_t>(begin)];
      for_each_kept(begin, end, [&out](int64_t, int32_t number) { *out++ = number; });
    });
  }
  return result;
}

KnownTerms::KnownTerms(const std::vector<std::string>& terms)
    : number_([&] {
        std::vector<std::pair<std::string, int32_t>> entries;
        entries.reserve(terms.size());
        for (const std::string& term : terms) {
          entries.emplace_back(term, static_cast<int32_t>(entries.size()));
        }
        return entries;
      }()) {}

ReviewTerms KnownTerms::read(std::span<const std::string_view> texts) const {
  ReviewTerms reviews;
  WordReader words;
  for (const std::string_view text : texts) {
    const std::size_t first = reviews.term.size();
    words.read(text, [&](std::string_view word) {
      if (const int32_t number = number_.find(word); number != StringIndex::kAbsent) {
        reviews.term.push_back(number);
      }
    });
    const auto begin = reviews.term.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, reviews.term.end());
    reviews.term.erase(std::unique(begin, reviews.term.end()), reviews.term.end());
    reviews.offset.push_back(std::ssize(reviews.term));
  }
  return reviews;
}

}  // namespace cfaa
