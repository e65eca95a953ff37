#pragma once

// BERT's tokenizer: normalise, split at white space and punctuation, then cut each word into the
// longest tokens of the vocabulary from left to right, or [UNK] where that fails.

#include <array>
#include <string>

#include "host/text/bert_chars.h"
#include "host/text/token_trie.h"
#include "host/text/tokenizer.h"

namespace cfaa {

/// Settings of the normaliser and of WordPiece; the defaults are bert-base-uncased's.
struct WordPieceConfig {
  bool clean_text = true;
  bool space_chinese = true;
  bool strip_accents = true;
  bool lowercase = true;
  std::string continuation = "##";
  std::size_t longest_word = 100;  // code points; longer ones are unknown
  std::int32_t unknown_id = 0;
};

class WordPiece final : public Tokenizer {
 public:
  WordPiece(Common common, const WordPieceConfig& config);

 protected:
  void encode_plain(std::string_view text, std::size_t limit, TokenizerScratch& scratch,
                    std::vector<std::int32_t>& ids) const override;

 private:
  class Words;

  enum class Ascii : std::uint8_t { kWord, kSpace, kPunct, kDrop };

  void add_word(std::string_view word, std::vector<std::int32_t>& ids) const;

  WordPieceConfig config_;
  const CaseMap& case_map_;
  TokenTrie trie_;
  std::array<Ascii, 128> ascii_{};
  std::array<char, 128> ascii_out_{};
};

}  // namespace cfaa
