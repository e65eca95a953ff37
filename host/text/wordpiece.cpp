#include "host/text/wordpiece.h"

#include <algorithm>

#include "host/io/utf8.h"

namespace cfaa {

// Collects the current word, normalised. Each step of the normaliser hands on to the next.
class WordPiece::Words {
 public:
  Words(const WordPiece& tokenizer, TokenizerScratch& scratch, std::vector<std::int32_t>& ids)
      : tokenizer_(tokenizer), word_(scratch.word_), marks_(scratch.marks_), ids_(ids) {
    word_.clear();
    marks_.clear();
  }

  // A run of ASCII word characters; returns its end.
  const char* add_ascii_run(const char* p, const char* end) {
    settle_marks();
    const char* const begin = p;
    while (p < end && static_cast<signed char>(*p) >= 0 &&
           tokenizer_.ascii_[static_cast<std::size_t>(*p)] == Ascii::kWord) {
      ++p;
    }
    std::size_t size = static_cast<std::size_t>(p - begin);
    code_points_ += size;
    if (code_points_ <= tokenizer_.config_.longest_word) {
      for (const char* c = begin; c < p; ++c) {
        word_.push_back(tokenizer_.ascii_out_[static_cast<std::size_t>(*c)]);
      }
    }
    return p;
  }

  void add_ascii_punct(char c) {
    finish_word();
    word_.push_back(tokenizer_.ascii_out_[static_cast<std::size_t>(c)]);
    code_points_ = 1;
    finish_word();
  }

  // clean_text, and spaces around Chinese characters.
  void clean(char32_t c) {
    const std::uint8_t flags = bert_flags_[c];
    const WordPieceConfig& config = tokenizer_.config_;
    if (config.clean_text) {
      if (flags & kCleanRemoves) return;
      if (flags & kCleanMakesSpace) return finish_word();
    }
    if (config.space_chinese && (flags & kChinese)) {
      finish_word();
      strip(c, flags);
      finish_word();
    } else {
      strip(c, flags);
    }
  }

  // Ends the word; a space, even one that is only inserted, ends a run of marks too.
  void finish_word() {
    settle_marks();
    if (code_points_ == 0) return;
    if (code_points_ > tokenizer_.config_.longest_word) {
      ids_.push_back(tokenizer_.config_.unknown_id);
    } else {
      tokenizer_.add_word(word_, ids_);
    }
    word_.clear();
    code_points_ = 0;
  }

 private:
  // Accents and case.
  void strip(char32_t c, std::uint8_t flags) {
    const bool strip_accents = tokenizer_.config_.strip_accents;
    if (strip_accents && c >= 0xAC00 && c <= 0xD7A3) {
      const char32_t syllable = c - 0xAC00;
      order(0x1100 + syllable / 588);
      order(0x1161 + syllable % 588 / 28);
      if (syllable % 28 != 0) order(0x11A7 + syllable % 28);
    } else if (tokenizer_.case_map_.changes(c)) {
      if (strip_accents && (flags & kBreaksMarks)) settle_marks();
      for (const char32_t out : tokenizer_.case_map_[c]) order(out);
    } else {
      order(c);
    }
  }

  // Stripping works on the canonical decomposition, in which marks are sorted by class.
  void order(char32_t c) {
    if (tokenizer_.config_.strip_accents && (bert_flags_[c] & kSurvivingMark)) {
      marks_.push_back(c);
    } else {
      settle_marks();
      split(c);
    }
  }

  void settle_marks() {
    if (marks_.empty()) return;
    std::stable_sort(marks_.begin(), marks_.end(),
                     [](char32_t a, char32_t b) { return mark_class(a) < mark_class(b); });
    for (const char32_t c : marks_) split(c);
    marks_.clear();
  }

  void split(char32_t c) {
    const std::uint8_t flags = bert_flags_[c];
    if (flags & kSplitsAsSpace) return finish_word();
    if (flags & kSplitsAsPunct) finish_word();
    if (++code_points_ <= tokenizer_.config_.longest_word) append_utf8(word_, c);
    if (flags & kSplitsAsPunct) finish_word();
  }

  const WordPiece& tokenizer_;
  const CodePointTable<std::uint8_t>& bert_flags_ = bert_flags();
  std::string& word_;
  std::vector<char32_t>& marks_;
  std::vector<std::int32_t>& ids_;
  std::size_t code_points_ = 0;  // of the word; those beyond the limit are counted, not kept
};

WordPiece::WordPiece(Common common, const WordPieceConfig& config)
    : Tokenizer(std::move(common)),
      config_(config),
      case_map_(CaseMap::of(config.strip_accents, config.lowercase)) {
  TokenTrie::Entries starts, continuations;
  for (std::size_t id = 0; id < vocabulary_size(); ++id) {
    const std::string& text = token(static_cast<std::int32_t>(id));
    starts.emplace_back(text, static_cast<std::int32_t>(id));
    if (text.starts_with(config.continuation)) {
      continuations.emplace_back(text.substr(config.continuation.size()),
                                 static_cast<std::int32_t>(id));
    }
  }
  trie_ = TokenTrie(starts, continuations);
  for (char32_t c = 0; c < 128; ++c) {
    const std::uint8_t flags = bert_flags()[c];
    ascii_[c] = config.clean_text && (flags & kCleanRemoves)      ? Ascii::kDrop
                : config.clean_text && (flags & kCleanMakesSpace) ? Ascii::kSpace
                : flags & kSplitsAsSpace                          ? Ascii::kSpace
                : flags & kSplitsAsPunct                          ? Ascii::kPunct
                                                                  : Ascii::kWord;
    ascii_out_[c] = static_cast<char>(case_map_.changes(c) ? case_map_[c][0] : c);
  }
}

void WordPiece::encode_plain(std::string_view text, std::size_t limit, TokenizerScratch& scratch,
                             std::vector<std::int32_t>& ids) const {
  Words words(*this, scratch, ids);
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end && ids.size() <= limit) {
    if (static_cast<signed char>(*p) < 0) {
      words.clean(next_code_point(p));
      continue;
    }
    switch (ascii_[static_cast<std::size_t>(*p)]) {
      case Ascii::kWord:
        p = words.add_ascii_run(p, end);
        break;
      case Ascii::kSpace:
        words.finish_word();
        ++p;
        break;
      case Ascii::kPunct:
        words.add_ascii_punct(*p++);
        break;
      case Ascii::kDrop:
        ++p;
        break;
    }
  }
  words.finish_word();
}

void WordPiece::add_word(std::string_view word, std::vector<std::int32_t>& ids) const {
  const std::size_t before = ids.size();
  TokenTrie::Root root = TokenTrie::kStart;
  while (!word.empty()) {
    const TokenTrie::Match match = trie_.longest(root, word);
    if (match.size == 0) {
      ids.resize(before);
      ids.push_back(config_.unknown_id);
      return;
    }
    ids.push_back(match.id);
    word.remove_prefix(match.size);
    root = TokenTrie::kContinuation;
  }
}

}  // namespace cfaa
