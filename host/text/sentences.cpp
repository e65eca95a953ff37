#include "host/text/sentences.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "host/io/utf8.h"

namespace cfaa {
namespace {

// What a byte can be the start of. A lead byte that starts no sentence end is skipped unseen, which
// is what makes Chinese text fast: its characters hardly share a lead byte with '。'.
enum ByteFlag : std::uint8_t { kMayEnd = 1, kMaySpace = 2, kLetter = 4, kAlnum = 8 };

const std::array<std::uint8_t, 256>& byte_flags() {
  static const std::array<std::uint8_t, 256> table = [] {
    std::array<std::uint8_t, 256> t{};
    std::string encoded;
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      const std::uint16_t flags = sentence_flags()[c];
      if ((flags & (kSentenceEnd | kWhiteSpace)) == 0) continue;
      encoded.clear();
      append_utf8(encoded, c);
      auto& lead = t[static_cast<unsigned char>(encoded[0])];
      if (flags & kSentenceEnd) lead |= kMayEnd;
      if (flags & kWhiteSpace) lead |= kMaySpace;
    }
    for (int c = 'a'; c <= 'z'; ++c) t[c] |= kLetter | kAlnum, t[c - 'a' + 'A'] |= kLetter | kAlnum;
    for (int c = '0'; c <= '9'; ++c) t[c] |= kAlnum;
    return t;
  }();
  return table;
}

// Finds its way in a text. Holds the tables, which are looked at for every byte.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool is_letter(std::size_t i) const { return (byte_flag(i) & kLetter) != 0; }
  bool is_alnum(std::size_t i) const { return (byte_flag(i) & kAlnum) != 0; }

  bool is_space(std::size_t i) const {
    return (byte_flag(i) & kMaySpace) && (flags(i) & kWhiteSpace);
  }

  std::size_t next(std::size_t i) const {
    const char* p = text_.data() + i;
    next_code_point(p);
    return static_cast<std::size_t>(p - text_.data());
  }

  std::size_t previous(std::size_t i) const {
    return static_cast<std::size_t>(previous_code_point(text_.data() + i) - text_.data());
  }

  // First white-space character at or behind i, or the end.
  std::size_t find_space(std::size_t i) const {
    while (i < text_.size() && !is_space(i)) ++i;
    return i;
  }

  std::size_t skip_space(std::size_t i) const {
    while (i < text_.size() && is_space(i)) i = next(i);
    return i;
  }

  // First sentence-end character at or behind i, or the end.
  std::size_t find_sentence_end(std::size_t i) const {
    for (; (i = skip_plain(i)) < text_.size(); ++i) {
      if ((byte_flag(i) & kMayEnd) && (flags(i) & kSentenceEnd)) break;
    }
    return i;
  }

  // Start of the chunk that holds position i, not before `floor`.
  std::size_t chunk_begin(std::size_t i, std::size_t floor) const {
    while (i > floor && !is_space(previous(i))) i = previous(i);
    return i;
  }

 private:
  std::uint8_t byte_flag(std::size_t i) const {
    return bytes_[static_cast<unsigned char>(text_[i])];
  }

  std::uint16_t flags(std::size_t i) const {
    const char* p = text_.data() + i;
    return flags_[next_code_point(p)];
  }

  // Passes over bytes that are neither . ! ? nor beyond ASCII, eight at a time: a byte of x -
  // 0x01.. that borrows while the byte of x had no high bit was zero, that is, equal to the mark.
  std::size_t skip_plain(std::size_t i) const {
    constexpr std::uint64_t kOnes = 0x0101010101010101u, kHigh = kOnes << 7;
    const auto equal = [](std::uint64_t word, char mark) {
      const std::uint64_t x = word ^ (kOnes * static_cast<unsigned char>(mark));
      return (x - kOnes) & ~x;
    };
    for (; i + 8 <= text_.size(); i += 8) {
      std::uint64_t word;
      std::memcpy(&word, text_.data() + i, 8);
      const std::uint64_t hit =
          (word | equal(word, '.') | equal(word, '!') | equal(word, '?')) & kHigh;
      if (hit == 0) continue;
      if constexpr (std::endian::native != std::endian::little) return i;
      return i + static_cast<std::size_t>(std::countr_zero(hit)) / 8;
    }
    return i;
  }

  std::string_view text_;
  const std::array<std::uint8_t, 256>& bytes_ = byte_flags();
  const CodePointTable<std::uint16_t>& flags_ = sentence_flags();
};

}  // namespace

// The rule on tokens, and the sentences found so far.
class SentenceSplitter::Cursor {
 public:
  Cursor(std::string_view text, std::vector<Sentence>& sentences)
      : text_(text), sentences_(sentences) {
    restart();
  }

  void restart() {
    sentences_.assign(1, {0, 0});
    pending_ = false;
  }

  /// True behind a sentence end: the next ordinary token starts a sentence.
  bool pending() const { return pending_; }

  void end_at(std::size_t end) {
    pending_ = true;
    last_end_ = end;
  }

  /// While pending: an ordinary token starts here.
  void start_at(std::size_t begin) {
    sentences_.back().end = last_end_;
    sentences_.push_back({begin, 0});
    pending_ = false;
  }

  void add(TextToken token) {
    const char* p = text_.data() + token.begin;
    const char* const end = text_.data() + token.end;
    std::uint16_t all = flags_[next_code_point(p)];
    if (p == end && (all & kSentenceEnd)) return end_at(token.end);
    if (!pending_) return;
    while (p < end && (all & kIsPunct)) all &= flags_[next_code_point(p)];
    if (all & kIsPunct) return end_at(token.end);
    start_at(token.begin);
  }

  /// Closes the last sentence. A single space at the very end belongs to the token before it.
  void finish() {
    std::size_t end = text_.size();
    if (end >= 2 && text_[end - 1] == ' ') {
      const char* before = previous_code_point(text_.data() + end - 1);
      if (!(flags_[next_code_point(before)] & kWhiteSpace)) --end;
    }
    sentences_.back().end = end;
  }

 private:
  std::string_view text_;
  const CodePointTable<std::uint16_t>& flags_ = sentence_flags();
  std::vector<Sentence>& sentences_;
  bool pending_ = false;
  std::size_t last_end_ = 0;  // end of the last token while pending
};

void SentenceSplitter::split(std::string_view text, std::vector<Sentence>& sentences) {
  sentences.clear();
  if (text.empty()) return;
  Cursor cursor(text, sentences);
  if (language_ == Language::kChinese) {
    split_chinese(text, cursor);
  } else if (!split_english(text, cursor)) {
    cursor.restart();
    split_english_with_merges(text, cursor);
  }
  cursor.finish();
}

void SentenceSplitter::split_chinese(std::string_view text, Cursor& cursor) const {
  const Scanner scanner(text);
  std::size_t i = 0;
  while (true) {
    if (!cursor.pending()) {
      i = scanner.find_sentence_end(i);
      if (i == text.size()) return;
    } else {
      // A white-space run is a token, less its first character if that is a space.
      const std::size_t behind = scanner.skip_space(i);
      const std::size_t run = i + (behind > i && text[i] == ' ');
      if (run < behind) {
        cursor.start_at(run);
        i = behind;
        continue;
      }
      i = behind;
      if (i == text.size()) return;
    }
    const std::size_t next = scanner.next(i);
    cursor.add({i, next});
    i = next;
  }
}

// Only chunks that hold a sentence-end character, and those behind one, can matter; the others are
// passed over. False if neighbouring tokens in such a chunk form a special case: whether that
// applies depends on tokens further away, so the text is then done with all its tokens.
bool SentenceSplitter::split_english(std::string_view text, Cursor& cursor) {
  const EnglishRules& rules = EnglishRules::instance();
  const Scanner scanner(text);
  std::size_t i = 0;  // everything before is done; a chunk starts here or white space does
  while (true) {
    std::size_t begin, end;
    if (!cursor.pending()) {
      const std::size_t mark = scanner.find_sentence_end(i);
      if (mark == text.size()) return true;
      // The common case: letters, then the mark, then the end of the chunk.
      begin = mark;
      while (begin > i && scanner.is_letter(begin - 1)) --begin;
      const std::size_t letters = begin;
      begin = scanner.chunk_begin(begin, i);
      end = scanner.find_space(mark);
      const std::size_t size = mark - begin;
      if (begin == letters && end == mark + 1 && size >= 2 &&
          !rules.is_special(text.substr(begin, size))) {
        if (text[mark] != '.') {
          cursor.end_at(end);
        } else if (!rules.is_special(text.substr(begin, size + 1))) {
          const bool last_lower = text[mark - 1] >= 'a';
          if (last_lower || text[mark - 2] < 'a') cursor.end_at(end);
        }
        i = end;
        continue;
      }
    } else {
      const std::size_t behind = scanner.skip_space(i);
      const std::size_t run = i + (behind > i && text[i] == ' ');
      if (run < behind) {
        cursor.start_at(run);
        i = behind;
        continue;
      }
      if (behind == text.size()) return true;
      if (scanner.is_alnum(behind)) {
        cursor.start_at(behind);
        i = behind;
        continue;
      }
      begin = behind;
      end = scanner.find_space(begin);
    }
    if (!add_chunk(text, begin, end, cursor)) return false;
    i = end;
  }
}

bool SentenceSplitter::add_chunk(std::string_view text, std::size_t begin, std::size_t end,
                                 Cursor& cursor) {
  tokens_.clear();
  tokenizer_.tokenize(text, begin, end, tokens_);
  const EnglishRules& rules = EnglishRules::instance();
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    rules.merges_at(text, tokens_, i, lengths_);
    if (!lengths_.empty()) return false;
  }
  for (const TextToken& token : tokens_) cursor.add(token);
  return true;
}

// All tokens of the text, with neighbours replaced that form a special case. A token that occurs in
// no such sequence separates what is before it from what comes behind, so memory stays bounded.
void SentenceSplitter::split_english_with_merges(std::string_view text, Cursor& cursor) {
  const EnglishRules& rules = EnglishRules::instance();
  const Scanner scanner(text);
  std::vector<TextToken> chunk;
  tokens_.clear();
  for (std::size_t i = 0; i < text.size();) {
    chunk.clear();
    const std::size_t behind = scanner.skip_space(i);
    const std::size_t run = i + (i > 0 && behind > i && text[i] == ' ');
    if (run < behind) chunk.push_back({run, behind});
    i = behind;
    if (i < text.size()) {
      const std::size_t end = scanner.find_space(i);
      tokenizer_.tokenize(text, i, end, chunk);
      i = end;
    }
    for (const TextToken& token : chunk) {
      tokens_.push_back(token);
      if (!rules.may_merge(text.substr(token.begin, token.end - token.begin))) {
        merge_and_add(text, cursor);
      }
    }
  }
  merge_and_add(text, cursor);
}

void SentenceSplitter::merge_and_add(std::string_view text, Cursor& cursor) {
  const EnglishRules& rules = EnglishRules::instance();
  // The longest sequences first, then the leftmost. A sequence across white space changes nothing,
  // and one that lost still keeps others from its tokens: so it is in spaCy.
  std::vector<std::pair<std::size_t, std::size_t>> found;  // start, length
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    rules.merges_at(text, tokens_, i, lengths_);
    for (const std::size_t length : lengths_) found.emplace_back(i, length);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<bool> taken(tokens_.size(), false);
  std::vector<std::size_t> merged(tokens_.size(), 0);  // length of the sequence that starts here
  for (const auto& [start, length] : found) {
    if (!taken[start] && !taken[start + length - 1]) {
      bool adjacent = true;
      for (std::size_t k = start + 1; k < start + length; ++k) {
        adjacent = adjacent && tokens_[k].begin == tokens_[k - 1].end;
      }
      if (adjacent) merged[start] = length;
    }
    std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(start), length, true);
  }
  for (std::size_t i = 0; i < tokens_.size(); i += std::max<std::size_t>(merged[i], 1)) {
    if (merged[i] == 0) {
      cursor.add(tokens_[i]);
      continue;
    }
    std::size_t at = tokens_[i].begin;
    const std::size_t end = tokens_[i + merged[i] - 1].end;
    for (const std::uint32_t length : rules.special_tokens(text.substr(at, end - at))) {
      cursor.add({at, at + length});
      at += length;
    }
  }
  tokens_.clear();
}

void to_code_point_offsets(std::string_view text, std::vector<Sentence>& sentences) {
  std::size_t bytes = 0, code_points = 0;
  const auto advance = [&](std::size_t& offset) {
    code_points += count_code_points(text.substr(bytes, offset - bytes));
    bytes = offset;
    offset = code_points;
  };
  for (Sentence& sentence : sentences) {
    advance(sentence.begin);
    advance(sentence.end);
  }
}

}  // namespace cfaa
