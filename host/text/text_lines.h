#pragma once

// Texts from a file or standard input, one a record: plain lines, JSON objects (one a line), CSV or
// TSV with a header; plain, gzip or zstd (host/io/input_stream.h). Reads in blocks, so memory is
// bounded by the longest record.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/data/readers/record_chunks.h"

namespace cfaa {

enum class LineFormat {
  kDetect,  // JSON if the first line that is not blank is a JSON object, otherwise plain
  kPlain,   // a line is a text, without its \n or \r\n; an empty line is an empty text
  kJson,    // blank lines are passed over
  kCsv,     // the first record names the columns; blank lines are passed over
  kTsv,
};

/// What a file's name says: .txt, .jsonl / .json / .ndjson, .csv, .tsv, each also with .gz or .zst
/// behind it; kDetect for any other.
LineFormat format_by_name(const std::string& path);

struct TextLinesOptions {
  LineFormat format = LineFormat::kDetect;
  std::string field = "text";  // of a JSON object, or a column
  std::string id_field;        // "": ids are not read
  /// A JSON object without the text, or with null, is an empty text: except the first one, which
  /// shows whether `field` names anything.
  bool absent_is_empty = false;
};

class TextLines {
 public:
  /// "-" is standard input. `range`: of a plain file of lines or JSON, which begins where a line
  /// does; behind the file's first byte the format must be given. Error if the file cannot be
  /// opened.
  TextLines(const std::string& path, TextLinesOptions options, ByteRange range = {});

  /// The next text, valid until the next call; false at the end. Bytes that are not UTF-8 and
  /// unpaired surrogates become U+FFFD. Error, naming the line, for a record that cannot be read or
  /// lacks the field.
  bool next(std::string_view& text);

  /// The format; one that was to be detected is known once next() was called.
  LineFormat format() const { return options_.format; }

  /// The id of that text: a string, or a whole number's digits.
  std::string_view id() const { return id_; }

  /// Ill-formed pieces replaced so far.
  std::size_t replaced() const { return replaced_; }

  /// Bytes of the file read so far, as they are on disk.
  std::uint64_t consumed() const { return stream_->consumed(); }
  FileIdentity identity() const { return stream_->identity(); }

 private:
  void open_format();
  void read_header(std::string_view head, std::size_t mark);
  bool next_record(std::string_view& record);
  std::string_view repair_json(std::string_view line, std::size_t& replaced);
  std::string_view text_of_json(std::string_view line);
  std::string_view text_of_fields(std::string_view record);
  std::string place() const;

  std::string path_;
  TextLinesOptions options_;
  std::uint64_t from_;  // the range's first byte
  std::unique_ptr<InputStream> stream_;
  RecordChunks chunks_;
  Chunk chunk_;
  std::string_view rest_;  // of the chunk
  RecordRule rule_;
  std::size_t text_column_ = 0, id_column_ = 0, columns_ = 0;  // of CSV and TSV
  bool open_ = false, first_ = true;
  std::size_t line_number_ = 0, record_line_ = 0, replaced_ = 0;
  std::string repaired_, text_, id_, scratch_;
  std::vector<std::string_view> fields_;
};

}  // namespace cfaa
