#pragma once

// Token ids of a text, equal to those of Hugging Face's fast tokenizers: BERT WordPiece and
// RoBERTa's byte-level BPE, read from an ordinary model directory.
//
//   auto tokenizer = load_tokenizer("models/minilm", {});
//   TokenizerScratch scratch(*tokenizer);                     // one per thread
//   std::vector<std::int32_t> ids;
//   tokenizer->encode("A fine guitar.", 128, scratch, ids);   // [CLS] a fine guitar . [SEP]
//
// A Tokenizer is immutable: any number of threads may share it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cfaa {

/// What "[SEP]" or "<mask>" in a user's text means.
enum class SpecialLiterals {
  kPlain,   // ordinary text: a review cannot end its own sequence
  kParity,  // the special token, which is what Hugging Face's tokenizers do by default
};

struct TokenizerOptions {
  SpecialLiterals special_literals = SpecialLiterals::kPlain;
  /// Overrides do_lower_case of tokenizer_config.json (BERT only).
  std::optional<bool> lower_case;
};

/// What happened to one text.
struct Encoding {
  bool truncated = false;    // there were more tokens than max_length
  std::size_t replaced = 0;  // ill-formed pieces of UTF-8 that became U+FFFD
};

class TokenizerScratch;

class Tokenizer {
 public:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  /// A token that is searched for in the raw text, in parity mode only.
  struct Literal {
    std::string text;
    std::int32_t id = 0;
    bool strip_left = false, strip_right = false;  // swallows white space on that side
  };

  /// What every kind of tokenizer needs.
  struct Common {
    std::vector<std::string> tokens;             // by id, as the vocabulary writes them
    std::vector<std::int32_t> opening, closing;  // e.g. {[CLS]}, {[SEP]}
    std::vector<Literal> literals;
    std::optional<std::int32_t> pad_id;
    std::size_t model_max_length = kNoLimit;
    SpecialLiterals special_literals = SpecialLiterals::kPlain;
  };

  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Writes the ids of `text`, special tokens included. Any bytes are accepted: what is not UTF-8
  /// counts as U+FFFD. At most `max_length` ids: the first ones, with the closing token kept, as
  /// Hugging Face truncates. Error if max_length leaves no room for the special tokens.
  Encoding encode(std::string_view text, std::size_t max_length, TokenizerScratch& scratch,
                  std::vector<std::int32_t>& ids) const;

  std::size_t vocabulary_size() const { return common_.tokens.size(); }
  const std::string& token(std::int32_t id) const {
    return common_.tokens[static_cast<std::size_t>(id)];
  }
  std::optional<std::int32_t> pad_id() const { return common_.pad_id; }

  /// `model_max_length` of tokenizer_config.json, kNoLimit where it states none.
  std::size_t model_max_length() const { return common_.model_max_length; }

 protected:
  explicit Tokenizer(Common common) : common_(std::move(common)) {}

  /// Appends the ids of well-formed text without special tokens; may stop once there are more than
  /// `limit` ids in all.
  virtual void encode_plain(std::string_view text, std::size_t limit, TokenizerScratch& scratch,
                            std::vector<std::int32_t>& ids) const = 0;

 private:
  void encode_with_literals(std::string_view text, std::size_t limit, TokenizerScratch& scratch,
                            std::vector<std::int32_t>& ids) const;

  Common common_;
};

/// Memory that encoding needs, and a bounded cache of pieces already merged. Belongs to one
/// tokenizer and one thread.
class TokenizerScratch {
 public:
  explicit TokenizerScratch(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

 private:
  friend class Tokenizer;
  friend class WordPiece;
  friend class ByteBpe;

  /// The merged ids of a short piece; the slot of another piece with the same hash is overwritten.
  static constexpr std::size_t kCachedBytes = 30;
  struct CachedPiece {
    std::uint8_t size = 0, count = 0;
    std::array<char, kCachedBytes> bytes;
    std::array<std::int32_t, 8> ids;
  };

  const Tokenizer* tokenizer_;
  std::string repaired_;            // the text, where it was not well-formed
  std::string word_;                // WordPiece: the normalised word
  std::vector<char32_t> marks_;     // WordPiece: combining marks to be put in canonical order
  std::vector<CachedPiece> cache_;  // byte BPE
  std::vector<std::int32_t> symbols_;
  std::vector<std::uint32_t> ranks_;
};

/// Reads a Hugging Face directory: vocab.txt (BERT), vocab.json + merges.txt (RoBERTa), each with
/// tokenizer_config.json where present, or a tokenizer.json alone of one of these two kinds. Error,
/// naming the file, for anything else.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& directory,
                                          const TokenizerOptions& options = {});

}  // namespace cfaa
