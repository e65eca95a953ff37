#pragma once

// What BERT's normaliser and pre-tokenizer make of a code point, as the reference really does it.
// The reference mixes several Unicode versions, so these are measured facts
// (host/text/tables/bert_chars.json, bert_marks.json), not a Unicode library's.

#include <cstdint>
#include <span>
#include <vector>

#include "host/text/code_point_table.h"

namespace cfaa {

/// Flags of a code point.
enum BertFlag : std::uint8_t {
  kCleanRemoves = 1,     // dropped by clean_text
  kCleanMakesSpace = 2,  // a space after clean_text
  kChinese = 4,          // gets a space on both sides
  kSplitsAsPunct = 8,    // a word of its own
  kSplitsAsSpace = 16,   // separates words
  kSurvivingMark = 32,   // a combining mark that strip_accents keeps: see mark_class
  kBreaksMarks = 64,     // a dropped mark that ends a run of marks
};

const CodePointTable<std::uint8_t>& bert_flags();

/// Canonical combining class of a kSurvivingMark.
int mark_class(char32_t c);

/// strip_accents and lower-casing, per code point. Hangul syllables are not in it: stripping
/// decomposes them by arithmetic.
class CaseMap {
 public:
  /// Made on the first call for these settings, and kept.
  static const CaseMap& of(bool strip_accents, bool lowercase);

  bool changes(char32_t c) const { return entry_[c] != 0; }

  /// What a changed code point becomes; may be empty.
  std::span<const char32_t> operator[](char32_t c) const {
    const char32_t* entry = pool_.data() + entry_[c];
    return {entry + 1, entry[0]};
  }

 private:
  CaseMap(bool strip_accents, bool lowercase);

  CodePointTable<std::uint16_t> entry_;  // index into pool_, 0: unchanged
  std::vector<char32_t> pool_ = {0};     // number of code points, then these
};

}  // namespace cfaa
