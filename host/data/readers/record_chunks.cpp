#include "host/data/readers/record_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "host/core/error.h"
#include "host/data/readers/delimited.h"

namespace cfaa {
namespace {

// A record longer than this is a file of another kind, or an unclosed quote.
constexpr std::size_t kLongestRecord = std::size_t{256} << 20;

}  // namespace

std::size_t whole_records(std::string_view text, const RecordRule& rule, bool at_end) {
  if (at_end) return text.size();
  if (!rule.quoted) {
    const std::size_t newline = text.rfind('\n');
    return newline == std::string_view::npos ? 0 : newline + 1;
  }
  std::size_t whole = 0;
  while (whole < text.size()) {
    const std::size_t length = record_length(text.substr(whole), rule);
    if (length == 0) break;
    whole += length;
  }
  return whole;
}

std::optional<uint64_t> Chunk::offset_of(std::string_view part) const {
  const std::less_equal<const char*> ordered;  // of any two pointers, which <= is not
  const char* begin = buffer.data();
  if (!ordered(begin, part.data()) || !ordered(part.data() + part.size(), begin + size)) {
    return std::nullopt;
  }
  return offset + static_cast<uint64_t>(part.data() - begin);
}

RecordChunks::RecordChunks(InputStream& stream, std::size_t chunk_bytes)
    : stream_(stream), chunk_bytes_(chunk_bytes) {}

void RecordChunks::refill(std::size_t capacity) {
  if (pending_.size() < capacity + kChunkPadding) pending_.resize(capacity + kChunkPadding);
  if (ended_ || pending_size_ >= capacity) return;
  const std::size_t wanted = capacity - pending_size_;
  const std::size_t got = stream_.read(pending_.data() + pending_size_, wanted);
  pending_size_ += got;
  ended_ = got < wanted;
}

std::string_view RecordChunks::head() {
  for (std::size_t capacity = chunk_bytes_;; capacity *= 2) {
    refill(capacity);
    const std::string_view head(pending_.data(), pending_size_);
    const std::size_t text = head.find_first_not_of(" \t\r\n");
    if (ended_ || head.find('\n', text) != std::string_view::npos) return head;
    if (capacity > kLongestRecord) refuse_length();
  }
}

void RecordChunks::refuse_length() const {
  throw Error(fmt::format(
      "{}: a record is longer than {} MiB{}", stream_.identity().name, kLongestRecord >> 20,
      rule_.quoted ? "; is a quote left open? (--quotes=false reads quotes as they are)"
                   : "; are these lines?"));
}

void RecordChunks::skip(std::size_t bytes) {
  CFAA_ASSERT(index_ == 0 && bytes <= pending_size_);
  skipped_ = bytes;
}

bool RecordChunks::next(Chunk& chunk) {
  if (skipped_ > 0) {
    std::memmove(pending_.data(), pending_.data() + skipped_, pending_size_ - skipped_);
    pending_size_ -= skipped_;
    offset_ += std::exchange(skipped_, 0);
  }
  for (std::size_t capacity = chunk_bytes_;; capacity *= 2) {
    refill(capacity);
    if (pending_size_ == 0) return false;
    const std::size_t whole = whole_records({pending_.data(), pending_size_}, rule_, ended_);
    if (whole > 0) {
      // The buffers change places; what is left of the last record moves to the new one.
      const std::size_t rest = pending_size_ - whole;
      if (chunk.buffer.size() < pending_.size()) chunk.buffer.resize(pending_.size());
      std::swap(chunk.buffer, pending_);
      std::memcpy(pending_.data(), chunk.buffer.data() + whole, rest);
      pending_size_ = rest;
      chunk.size = whole;
      chunk.index = index_++;
      chunk.offset = std::exchange(offset_, offset_ + whole);
      return true;
    }
    if (capacity > kLongestRecord) refuse_length();
  }
}

}  // namespace cfaa
