#pragma once

// Cuts a decompressed stream into chunks of whole records, so that threads can parse chunks apart.
// Lines end at '\n'; a delimited file with quotes may hold newlines inside a record, so its cuts
// follow the quotes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/io/input_stream.h"

namespace cfaa {

// Bytes that may be read past a chunk's end (simdjson reads in vectors).
constexpr std::size_t kChunkPadding = 64;

struct Chunk {
  std::vector<char> buffer;  // size + kChunkPadding bytes at least
  std::size_t size = 0;
  int64_t index = 0;    // 0, 1, 2, ... in file order
  uint64_t offset = 0;  // of the first byte in the decompressed file

  std::string_view text() const { return {buffer.data(), size}; }
  // The offset of `part` in the decompressed file, where it is a view of this chunk's text.
  std::optional<uint64_t> offset_of(std::string_view part) const;
};

// How records end. `quoted`: a field that begins with '"' runs to its closing quote.
struct RecordRule {
  bool quoted = false;
  char delimiter = ',';
};

// The length of the whole records at the front of `text`, 0 where there is none; with `at_end` the
// last record needs no newline.
std::size_t whole_records(std::string_view text, const RecordRule& rule, bool at_end);

class RecordChunks {
 public:
  RecordChunks(InputStream& stream, std::size_t chunk_bytes);

  // The first bytes of the stream, to know the format by: a chunk, or more where the first line
  // that is not blank ends later. Before any next().
  std::string_view head();
  void set_rule(const RecordRule& rule) { rule_ = rule; }
  // Leaves out the first `bytes`, a header or a byte order mark; only of head(), before any next().
  void skip(std::size_t bytes);

  // The next chunk, or false at the end. Not for two threads at once.
  bool next(Chunk& chunk);

 private:
  void refill(std::size_t capacity);
  [[noreturn]] void refuse_length() const;

  InputStream& stream_;
  std::size_t chunk_bytes_;
  RecordRule rule_;
  std::vector<char> pending_;  // read and not yet handed out
  std::size_t pending_size_ = 0, skipped_ = 0;
  bool ended_ = false;
  int64_t index_ = 0;
  uint64_t offset_ = 0;  // of pending_ in the decompressed file
};

}  // namespace cfaa
