#pragma once

// RoBERTa's tokenizer (GPT-2's): the text is cut into pieces by a fixed rule for contractions,
// letters, numbers and spaces; the bytes of a piece are merged pair by pair, the pair that comes
// first in merges.txt first.

#include <array>
#include <string>
#include <utility>

#include "host/text/string_index.h"
#include "host/text/tokenizer.h"

namespace cfaa {

struct ByteBpeConfig {
  bool add_prefix_space = false;
  bool ignore_merges = false;  // a piece that is a token is taken whole, whatever the merges say
  std::optional<std::int32_t> unknown_id;  // for bytes without a token; absent: they are dropped
  bool fuse_unknown = false;               // neighbouring unknown bytes give one token
};

/// The two halves of a merge and what they become, in order of rank.
struct Merge {
  std::int32_t left, right, merged;
};

class ByteBpe final : public Tokenizer {
 public:
  ByteBpe(Common common, const std::vector<Merge>& merges, const ByteBpeConfig& config);

 protected:
  void encode_plain(std::string_view text, std::size_t limit, TokenizerScratch& scratch,
                    std::vector<std::int32_t>& ids) const override;

 private:
  struct Rule {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = kNoRank;
    std::int32_t merged = 0;
  };
  static constexpr std::uint64_t kNoPair = ~0ull;
  static constexpr std::uint32_t kNoRank = ~0u;

  const Rule& rule(std::int32_t left, std::int32_t right) const;
  void add_piece(std::string_view piece, TokenizerScratch& scratch,
                 std::vector<std::int32_t>& ids) const;
  void merge_short(TokenizerScratch& scratch) const;
  void merge_long(TokenizerScratch& scratch) const;
  void merge(std::string_view piece, TokenizerScratch& scratch) const;

  ByteBpeConfig config_;
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<Rule> rules_;  // open addressing, a power of two
  StringIndex whole_;        // pieces, as raw bytes, that merge into a single token
};

/// The character that stands for a byte in vocab.json and merges.txt: printable ones for
/// themselves, the others from U+0100 on.
char32_t byte_character(unsigned char byte);

}  // namespace cfaa
