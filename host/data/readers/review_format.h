#pragma once

// Which format a file has, known by its first bytes, and which columns hold what: named by the
// user, known from an Amazon release, or guessed from the names and said.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/data/prepare_options.h"
#include "host/data/readers/delimited.h"
#include "host/data/readers/json_lines.h"
#include "host/data/readers/record_chunks.h"
#include "host/data/review.h"

namespace cfaa {

enum class FormatKind { json_lines, python_lines, delimited };

struct ReviewFormat {
  FormatKind kind = FormatKind::json_lines;
  std::string name;              // for people: "JSON lines (Amazon 2014 / 2018)"
  std::string said;              // "user = reviewerID, item = asin, ..."
  ObjectKeys keys;               // of json_lines and python_lines
  RecordRule rule;               // of delimited
  DelimitedColumns columns;      // of delimited
  std::size_t header_bytes = 0;  // byte order mark and header, to be skipped
  int64_t header_lines = 0;
};

// The columns as the user names them:
// "user=uid,item=sku,rating=stars,text=body,time=ts,title=name"; what is left out is guessed.
// Numbers count columns from 1 in a delimited file without a header.
struct ColumnChoice {
  std::string user, item, rating, text, time, title;
  std::string flag = "--columns";  // that says so, for messages
};
ColumnChoice parse_columns(const std::string& text, const std::string& flag = "--columns");
// Of a domain, "source" or "target": its own columns, and for the rest those of both.
ColumnChoice columns_of(const PrepareOptions& options, const std::string& domain);

// Which of a table's columns hold what, named or guessed, and what is said of it. Throws Error
// naming `path` where one that is needed cannot be told.
struct ChosenColumns {
  ColumnChoice columns;
  std::string said;
};
ChosenColumns choose_columns(const std::vector<std::string>& names, const ColumnChoice& choice,
                             const std::string& path);

// Throws Error naming `path` where the format or a needed column cannot be told.
ReviewFormat detect_format(std::string_view head, const ColumnChoice& choice, bool quotes,
                           const std::string& path);
// Of a file about items, of which only ids and titles are read.
ReviewFormat detect_title_format(std::string_view head, bool quotes, const std::string& path);

// Parses chunks of one format; one per thread.
class ReviewParser {
 public:
  ReviewParser(const ReviewFormat& format, InvalidUtf8 invalid);
  // Returns how many lines the chunk has.
  int64_t parse(const Chunk& chunk, RawReviewSink& sink);

 private:
  const ReviewFormat& format_;
  InvalidUtf8 invalid_;
  std::unique_ptr<JsonLines> json_;
};

}  // namespace cfaa
