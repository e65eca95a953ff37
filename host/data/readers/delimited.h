#pragma once

// CSV, TSV and RecBole's .inter: fields between delimiters. With quotes on, a field that begins
// with '"' runs to its closing quote, may hold delimiters and newlines, and writes a quote as two;
// a quote inside an unquoted field is an ordinary character.

#include <string>
#include <string_view>
#include <vector>

#include "host/data/readers/record_chunks.h"
#include "host/data/review.h"

namespace cfaa {

// Where each part of a review stands in a record, counted from 0; -1: nowhere.
struct DelimitedColumns {
  int user = -1, item = -1, rating = -1, text = -1, time = -1, title = -1;
  int count = 0;  // fields that every record must have
};

// The length of the first record with its newline, or 0 where `text` ends inside it.
std::size_t record_length(std::string_view text, const RecordRule& rule);

// The fields of one record (without its newline), unquoted. Views point into `record` or, for
// fields with doubled quotes, into `scratch`. Returns "" or what is wrong.
std::string split_fields(std::string_view record, const RecordRule& rule,
                         std::vector<std::string_view>& fields, std::string& scratch);

// Hands every record of the chunk to the sink and returns how many lines there were.
int64_t parse_delimited(std::string_view chunk, const RecordRule& rule,
                        const DelimitedColumns& columns, InvalidUtf8 invalid, RawReviewSink& sink);

}  // namespace cfaa
