#pragma once

// The words of a text, for counting: runs of letters and digits, ASCII letters in lower case. A
// Chinese character is a word by itself, as it is a piece by itself for BERT's WordPiece. What lies
// between words (spaces, punctuation, apostrophes) is dropped: "Don't" is "don" and "t".

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "host/io/utf8.h"
#include "host/text/bert_chars.h"
#include "host/text/english_tokens.h"

namespace cfaa {

// By ASCII byte: a digit itself, a letter in lower case, 0 for every other.
inline constexpr std::array<char, 128> kLowerAlphanumeric = [] {
  std::array<char, 128> lower{};
  for (char c = '0'; c <= '9'; ++c) lower[static_cast<std::size_t>(c)] = c;
  for (char c = 'a'; c <= 'z'; ++c) {
    lower[static_cast<std::size_t>(c)] = c;
    lower[static_cast<std::size_t>(c - 'a' + 'A')] = c;
  }
  return lower;
}();

// One per thread: it holds the word being read.
class WordReader {
 public:
  // Calls take(word) for each word of `text`, in order. Ill-formed UTF-8 separates words.
  template <class Take>
  void read(std::string_view text, Take take) {
    if (!is_utf8(text)) {
      std::size_t replaced = 0;
      text = well_formed(text, repaired_, replaced);
    }
    // A word is never longer than the text: lower case is written here without a check a byte.
    if (word_.size() < text.size()) word_.resize(text.size());
    char* const begin = word_.data();
    char* out = begin;
    const auto finish = [&] {
      if (out != begin) take(std::string_view(begin, static_cast<std::size_t>(out - begin)));
      out = begin;
    };
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p != end;) {
      const auto byte = static_cast<unsigned char>(*p);
      if (byte < 0x80) {
        const char lower = kLowerAlphanumeric[byte];
        *out = lower;
        if (lower != 0) {
          ++out;
        } else {
          finish();
        }
        ++p;
        continue;
      }
      const char* const start = p;
      const char32_t c = next_code_point(p);
      if ((bert_[c] & kChinese) != 0) {
        finish();
        take(std::string_view(start, static_cast<std::size_t>(p - start)));
      } else if ((flags_[c] & kWord) != 0) {
        out = std::copy(start, p, out);
      } else {
        finish();
      }
    }
    finish();
  }

 private:
  const CodePointTable<std::uint16_t>& flags_ = sentence_flags();
  const CodePointTable<std::uint8_t>& bert_ = bert_flags();
  std::string repaired_, word_;
};

}  // namespace cfaa
