#include "host/data/readers/delimited.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/io/utf8.h"

namespace cfaa {
namespace {

std::size_t find_from(std::string_view text, char wanted, std::size_t from) {
  if (from >= text.size()) return std::string_view::npos;
  const void* at = std::memchr(text.data() + from, wanted, text.size() - from);
  return at ? static_cast<std::size_t>(static_cast<const char*>(at) - text.data())
            : std::string_view::npos;
}

// Past the closing quote of the quoted field that opens at `open`, or npos.
std::size_t end_of_quoted(std::string_view text, std::size_t open) {
  std::size_t at = open + 1;
  for (;;) {
    at = find_from(text, '"', at);
    if (at == std::string_view::npos) return at;
    if (at + 1 < text.size() && text[at + 1] == '"') {
      at += 2;
      continue;
    }
    return at + 1;
  }
}

std::string_view without_newline(std::string_view record) {
  if (record.ends_with('\n')) record.remove_suffix(1);
  if (record.ends_with('\r')) record.remove_suffix(1);
  return record;
}

}  // namespace

std::size_t record_length(std::string_view text, const RecordRule& rule) {
  if (!rule.quoted) {
    const std::size_t newline = find_from(text, '\n', 0);
    return newline == std::string_view::npos ? 0 : newline + 1;
  }
  std::size_t at = 0;
  for (;;) {
    if (at < text.size() && text[at] == '"') {
      at = end_of_quoted(text, at);
      // A closing quote as the last byte may be the first half of a doubled one.
      if (at == std::string_view::npos || at == text.size()) return 0;
    }
    while (at < text.size() && text[at] != rule.delimiter && text[at] != '\n') ++at;
    if (at >= text.size()) return 0;
    if (text[at++] == '\n') return at;
  }
}

std::string split_fields(std::string_view record, const RecordRule& rule,
                         std::vector<std::string_view>& fields, std::string& scratch) {
  fields.clear();
  scratch.clear();
  scratch.reserve(record.size());  // views into it stay valid
  std::size_t at = 0;
  for (;;) {
    if (rule.quoted && at < record.size() && record[at] == '"') {
      const std::size_t end = end_of_quoted(record, at);
      if (end == std::string_view::npos) return "a quoted field is not closed";
      const std::string_view inside = record.substr(at + 1, end - at - 2);
      if (inside.find('"') == std::string_view::npos) {
        fields.push_back(inside);
      } else {
        const std::size_t start = scratch.size();
        for (std::size_t i = 0; i < inside.size(); ++i) {
          scratch.push_back(inside[i]);
          if (inside[i] == '"') ++i;
        }
        fields.push_back({scratch.data() + start, scratch.size() - start});
      }
      at = end;
      if (at < record.size() && record[at] != rule.delimiter) {
        return fmt::format("text follows the closing quote of field {}", fields.size());
      }
    } else {
      const std::size_t end = std::min(find_from(record, rule.delimiter, at), record.size());
      fields.push_back(record.substr(at, end - at));
      at = end;
    }
    if (at >= record.size()) return "";
    ++at;
  }
}

int64_t parse_delimited(std::string_view chunk, const RecordRule& rule,
                        const DelimitedColumns& columns, InvalidUtf8 invalid, RawReviewSink& sink) {
  const bool clean = is_utf8(chunk);
  std::vector<std::string_view> fields;
  std::string scratch, repaired;
  int64_t line = 0;
  while (!chunk.empty()) {
    std::size_t length = record_length(chunk, rule);
    if (length == 0) length = chunk.size();
    const std::string_view whole = chunk.substr(0, length);
    const int64_t here = line;
    line += std::count(whole.begin(), whole.end(), '\n') + !whole.ends_with('\n');
    chunk.remove_prefix(length);
    std::string_view record = without_newline(whole);
    if (record.empty()) continue;
    if (!clean && !repair_utf8(record, invalid, repaired)) {
      sink.reject(here, kNotUtf8);
      continue;
    }
    if (std::string reason = split_fields(record, rule, fields, scratch); !reason.empty()) {
      sink.reject(here, std::move(reason));
      continue;
    }
    if (static_cast<int>(fields.size()) != columns.count) {
      sink.reject(here,
                  fmt::format("{} fields where the header has {}", fields.size(), columns.count));
      continue;
    }
    const auto field = [&](int column) {
      return column < 0 ? std::string_view() : fields[static_cast<std::size_t>(column)];
    };
    RawReview review{field(columns.user), field(columns.item), field(columns.text),
                     field(columns.title)};
    const std::string_view rating = field(columns.rating), time = field(columns.time);
    if (!rating.empty()) {
      review.rating = parse_number(rating);
      if (std::isnan(review.rating)) {
        sink.reject(here, fmt::format("the rating '{}' is not a number", rating.substr(0, 40)));
        continue;
      }
    }
    if (!time.empty()) {
      review.time = parse_number(time);
      if (std::isnan(review.time)) {
        sink.reject(here, fmt::format("the time '{}' is not a number", time.substr(0, 40)));
        continue;
      }
    }
    sink.accept(review, here);
  }
  return line;
}

}  // namespace cfaa
