#include "host/text/byte_bpe.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "host/io/utf8.h"
#include "host/text/byte_classes.h"

namespace cfaa {
namespace {

constexpr std::size_t kCacheSlots = 8192;  // 0.5 MB a thread
constexpr std::size_t kShortPiece = 48;    // symbols; above, a heap beats scanning

// The next piece of
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// at p < end; returns its end.
const char* piece_end(const char* p, const char* end, const CodePointTable<ByteClass>& classes) {
  const auto class_at = [&](const char*& q) { return classes[next_code_point(q)]; };
  if (*p == '\'' && p + 1 < end) {
    const char a = p[1], b = p + 2 < end ? p[2] : '\0';
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return p + 3;
  }
  const char* q = p;
  ByteClass kind = class_at(q);
  if (*p == ' ' && q < end) {
    const char* behind = q;
    const ByteClass next = class_at(behind);
    if (next != ByteClass::kSpace) kind = next, q = behind;
  }
  const char* last = p;  // start of the last code point of the run
  while (q < end) {
    const char* behind = q;
    if (class_at(behind) != kind) break;
    last = q;
    q = behind;
  }
  // White space leaves its last character to what follows, unless it is all there is.
  if (kind == ByteClass::kSpace && q < end && last > p) return last;
  return q;
}

}  // namespace

char32_t byte_character(unsigned char byte) {
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  if (printable(byte)) return byte;
  char32_t character = 0x100;
  for (int b = 0; b < byte; ++b) character += !printable(b);
  return character;
}

ByteBpe::ByteBpe(Common common, const std::vector<Merge>& merges, const ByteBpeConfig& config)
    : Tokenizer(std::move(common)), config_(config) {
  rules_.resize(std::bit_ceil(merges.size() * 2 + 2));
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right, merged] = merges[rank];
    auto& slot = const_cast<Rule&>(rule(left, right));
    // Of two equal merges the later one counts, as in a dictionary.
    slot = {static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right), rank,
            merged};
  }

  // The vocabulary as raw bytes. Tokens with other characters (none in practice but special
  // tokens) cannot come from text.
  CodePointTable<std::int16_t> byte_of;
  for (int b = 0; b < 256; ++b) {
    byte_of.at(byte_character(static_cast<unsigned char>(b))) = static_cast<std::int16_t>(b + 1);
  }
  byte_ids_.fill(config.unknown_id.value_or(-1));
  std::vector<std::pair<std::string, std::int32_t>> raw;
  for (std::size_t id = 0; id < vocabulary_size(); ++id) {
    const std::string& text = token(static_cast<std::int32_t>(id));
    std::string bytes;
    bool complete = !text.empty();
    for (const char* p = text.data(); p < text.data() + text.size();) {
      const int byte = byte_of[next_code_point(p)];
      complete = complete && byte > 0;
      bytes.push_back(static_cast<char>(byte - 1));
    }
    if (!complete) continue;
    if (bytes.size() == 1) {
      byte_ids_[static_cast<unsigned char>(bytes[0])] = static_cast<std::int32_t>(id);
    }
    raw.emplace_back(std::move(bytes), static_cast<std::int32_t>(id));
  }
  // A piece that is a token mostly merges into just that token. Where it does, one lookup replaces
  // the merging; that is checked here, once for each token.
  TokenizerScratch scratch(*this);
  std::erase_if(raw, [&](const auto& entry) {
    if (config.ignore_merges) return false;
    merge(entry.first, scratch);
    return scratch.symbols_.size() != 1 || scratch.symbols_[0] != entry.second;
  });
  whole_ = StringIndex(raw);
}

const ByteBpe::Rule& ByteBpe::rule(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair =
      static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  const std::uint64_t hash = pair * 0x9E3779B97F4A7C15u;
  for (std::size_t i = hash >> 32;; ++i) {
    const Rule& slot = rules_[i & (rules_.size() - 1)];
    if (slot.pair == pair || slot.pair == kNoPair) return slot;
  }
}

void ByteBpe::encode_plain(std::string_view text, std::size_t limit, TokenizerScratch& scratch,
                           std::vector<std::int32_t>& ids) const {
  if (text.empty()) return;
  std::string prefixed;
  if (config_.add_prefix_space && text[0] != ' ') {
    prefixed.push_back(' ');
    prefixed.append(text);
    text = prefixed;
  }
  const CodePointTable<ByteClass>& classes = byte_classes();
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end && ids.size() <= limit) {
    const char* const next = piece_end(p, end, classes);
    add_piece({p, static_cast<std::size_t>(next - p)}, scratch, ids);
    p = next;
  }
}

void ByteBpe::add_piece(std::string_view piece, TokenizerScratch& scratch,
                        std::vector<std::int32_t>& ids) const {
  if (const std::int32_t id = whole_.find(piece); id != StringIndex::kAbsent) {
    ids.push_back(id);
    return;
  }
  TokenizerScratch::CachedPiece* cached = nullptr;
  if (piece.size() <= TokenizerScratch::kCachedBytes) {
    if (scratch.cache_.empty()) scratch.cache_.resize(kCacheSlots);
    cached = &scratch.cache_[hash_bytes(piece) % kCacheSlots];
    if (cached->size == piece.size() &&
        std::memcmp(cached->bytes.data(), piece.data(), piece.size()) == 0) {
      ids.insert(ids.end(), cached->ids.begin(), cached->ids.begin() + cached->count);
      return;
    }
  }
  merge(piece, scratch);
  ids.insert(ids.end(), scratch.symbols_.begin(), scratch.symbols_.end());
  if (cached != nullptr && scratch.symbols_.size() <= cached->ids.size()) {
    cached->size = static_cast<std::uint8_t>(piece.size());
    cached->count = static_cast<std::uint8_t>(scratch.symbols_.size());
    std::copy(piece.begin(), piece.end(), cached->bytes.begin());
    std::copy(scratch.symbols_.begin(), scratch.symbols_.end(), cached->ids.begin());
  }
}

// Leaves the merged symbols of the piece in scratch.symbols_.
void ByteBpe::merge(std::string_view piece, TokenizerScratch& scratch) const {
  auto& symbols = scratch.symbols_;
  symbols.clear();
  bool unknown_before = false;
  for (const char c : piece) {
    const std::int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    const bool unknown = id < 0 || id == config_.unknown_id;
    if (id >= 0 && !(unknown && unknown_before && config_.fuse_unknown)) symbols.push_back(id);
    unknown_before = unknown;
  }
  if (symbols.size() <= kShortPiece) {
    merge_short(scratch);
  } else {
    merge_long(scratch);
  }
}

// Scans for the best pair, merges it, and repeats.
void ByteBpe::merge_short(TokenizerScratch& scratch) const {
  auto& symbols = scratch.symbols_;
  auto& ranks = scratch.ranks_;  // of the pair (i, i + 1)
  const auto rank_at = [&](std::size_t i) {
    return i + 1 < symbols.size() ? rule(symbols[i], symbols[i + 1]).rank : kNoRank;
  };
  ranks.resize(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) ranks[i] = rank_at(i);
  while (symbols.size() > 1) {
    const auto best = std::min_element(ranks.begin(), ranks.end());
    if (*best == kNoRank) return;
    const auto i = best - ranks.begin();
    const auto at = static_cast<std::size_t>(i);
    symbols[at] = rule(symbols[at], symbols[at + 1]).merged;
    symbols.erase(symbols.begin() + i + 1);
    ranks.erase(ranks.begin() + i + 1);
    ranks[at] = rank_at(at);
    if (at > 0) ranks[at - 1] = rank_at(at - 1);
  }
}

// The same in n log n: a heap of candidate pairs over a linked list of symbols. A candidate whose
// symbols have changed since is passed over when it comes up.
void ByteBpe::merge_long(TokenizerScratch& scratch) const {
  struct Candidate {
    std::uint32_t rank;
    std::uint32_t at;
    std::uint64_t pair;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  auto& symbols = scratch.symbols_;
  const auto size = static_cast<std::uint32_t>(symbols.size());
  std::vector<std::uint32_t> next(size), previous(size);
  std::vector<bool> gone(size, false);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto offer = [&](std::uint32_t at) {
    if (next[at] == size) return;
    const Rule& r = rule(symbols[at], symbols[next[at]]);
    if (r.rank != kNoRank) heap.push({r.rank, at, r.pair});
  };
  for (std::uint32_t i = 0; i < size; ++i) next[i] = i + 1, previous[i] = i - 1;
  for (std::uint32_t i = 0; i < size; ++i) offer(i);
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    if (gone[top.at] || next[top.at] == size) continue;
    const std::uint32_t right = next[top.at];
    const Rule& r = rule(symbols[top.at], symbols[right]);
    if (r.pair != top.pair) continue;
    symbols[top.at] = r.merged;
    gone[right] = true;
    next[top.at] = next[right];
    if (next[right] != size) previous[next[right]] = top.at;
    offer(top.at);
    if (top.at > 0) offer(previous[top.at]);
  }
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (!gone[i]) symbols[kept++] = symbols[i];
  }
  symbols.resize(kept);
}

}  // namespace cfaa
