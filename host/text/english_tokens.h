#pragma once

// The part of spaCy's English tokenizer that decides where sentences end.
//
// Text is cut at white space into chunks; a chunk is peeled from both ends (brackets, quotes, full
// stops, units), what remains is a special case ("Mr.", ":D"), a URL, or is cut at infixes. The
// rules and tables are those of spaCy 3.8; host/text/tables/spacy_en_rules.json has the facts.

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/text/code_point_table.h"
#include "host/text/string_index.h"

namespace cfaa {

/// What the sentence splitter asks of a code point. ASCII digits are tested directly.
enum SentenceFlag : std::uint16_t {
  kSentenceEnd = 1,  // . ! ? and 125 others
  kIsPunct = 2,      // Unicode P*
  kWhiteSpace = 4,   // str.isspace()
  kPunctRule = 8,    // the rule tables from here on
  kQuote = 16,
  kCurrency = 32,
  kPrefixSingle = 64,
  kIcon = 128,
  kAlphaLower = 256,
  kAlphaUpper = 512,
  kAlpha = 1024,
  kWord = 2048,     // \w
  kDecimal = 4096,  // \d
};

/// The flags of every code point; built at first use, then shared.
const CodePointTable<std::uint16_t>& sentence_flags();

/// A token: byte offsets into the text, end exclusive.
struct TextToken {
  std::size_t begin, end;
};

/// The tables that are keyed by strings; built at first use, then shared.
class EnglishRules {
 public:
  static const EnglishRules& instance();

  bool is_special(std::string_view text) const { return special_.contains(text); }

  /// Byte lengths of the tokens of a special case; empty if `text` is none.
  const std::vector<std::uint32_t>& special_tokens(std::string_view text) const;

  bool is_unit(std::string_view text) const { return units_.contains(text); }

  /// The lengths, in tokens, of all merge sequences that start at tokens[i]. Tokens count as
  /// neighbours whatever lies between them.
  void merges_at(std::string_view text, const std::vector<TextToken>& tokens, std::size_t i,
                 std::vector<std::size_t>& lengths) const;

  /// True if the token stands in some merge sequence.
  bool may_merge(std::string_view token) const { return merge_tokens_.contains(token); }

 private:
  EnglishRules();

  StringIndex special_;  // -> special_lengths_
  std::vector<std::vector<std::uint32_t>> special_lengths_;
  StringIndex units_;
  StringIndex merge_tokens_;
  StringIndex merge_heads_;                                    // first token -> merges_
  std::vector<std::vector<std::vector<std::string>>> merges_;  // the remaining tokens of each
};

/// Cuts chunks into tokens. Holds scratch memory: one instance per thread.
class EnglishChunkTokenizer {
 public:
  /// Appends the tokens of text[begin, end), which must hold no white space.
  void tokenize(std::string_view text, std::size_t begin, std::size_t end,
                std::vector<TextToken>& tokens);

 private:
  std::size_t prefix_length(std::size_t low, std::size_t high) const;
  std::size_t suffix_length(std::size_t low, std::size_t high) const;
  std::size_t infix_length(std::size_t i, std::size_t low, std::size_t high) const;
  bool full_stop_leaves(std::size_t low, std::size_t high) const;
  bool is_url(std::size_t low, std::size_t high) const;
  bool is_host(std::size_t low, std::size_t high) const;
  bool is_domain(std::size_t low, std::size_t high) const;
  bool is_public_ipv4(std::size_t low, std::size_t high) const;

  char32_t at(std::size_t i) const { return code_points_[i]; }
  bool has(std::size_t i, unsigned flags) const { return (flags_[i] & flags) != 0; }
  bool is_digit(std::size_t i) const { return at(i) >= '0' && at(i) <= '9'; }
  std::string_view bytes(std::size_t low, std::size_t high) const;
  void push(std::size_t low, std::size_t high, std::vector<TextToken>& tokens) const;

  const EnglishRules& rules_ = EnglishRules::instance();
  const CodePointTable<std::uint16_t>& table_ = sentence_flags();
  std::string_view text_;
  std::vector<char32_t> code_points_;
  std::vector<std::uint16_t> flags_;
  std::vector<std::size_t> offsets_;  // byte offset of each code point, and the end
  std::vector<TextToken> suffixes_;
};

}  // namespace cfaa
