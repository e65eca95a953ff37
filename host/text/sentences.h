#pragma once

// Sentences of a review, cut where spaCy's rule-based sentencizer cuts them on a blank English or
// Chinese pipeline.
//
// A sentence starts at the first token, and at the first token behind a sentence end ('.', '!',
// '。', ...; a token of its own) that is neither a sentence end nor all punctuation. It runs to the
// end of its last token: the one space between two tokens belongs to no sentence. In Chinese every
// character is a token; in English spaCy's tokenizer decides which full stops are tokens
// (host/text/english_tokens.h).

#include <cstddef>
#include <string_view>
#include <vector>

#include "host/text/english_tokens.h"

namespace cfaa {

enum class Language { kEnglish, kChinese };

/// Offsets of a sentence, end exclusive.
struct Sentence {
  std::size_t begin, end;
  friend bool operator==(const Sentence&, const Sentence&) = default;
};

/// Splits texts of one language. Holds scratch memory: one instance per thread.
class SentenceSplitter {
 public:
  explicit SentenceSplitter(Language language) : language_(language) {}

  /// Writes the sentences of `text` (well-formed UTF-8, see utf8.h) as byte offsets. An empty text
  /// has none; any other has at least one. Time is linear in the text.
  void split(std::string_view text, std::vector<Sentence>& sentences);

 private:
  class Cursor;

  void split_chinese(std::string_view text, Cursor& cursor) const;
  bool split_english(std::string_view text, Cursor& cursor);
  void split_english_with_merges(std::string_view text, Cursor& cursor);
  bool add_chunk(std::string_view text, std::size_t begin, std::size_t end, Cursor& cursor);
  void merge_and_add(std::string_view text, Cursor& cursor);

  Language language_;
  EnglishChunkTokenizer tokenizer_;
  std::vector<TextToken> tokens_;
  std::vector<std::size_t> lengths_;  // of merges that start at a token
};

/// Turns byte offsets into code-point offsets; the sentences must be in order.
void to_code_point_offsets(std::string_view text, std::vector<Sentence>& sentences);

}  // namespace cfaa
