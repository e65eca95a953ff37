#include "host/data/readers/json_lines.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "host/data/readers/record_chunks.h"
#include "host/io/utf8.h"

namespace cfaa {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

static_assert(simdjson::SIMDJSON_PADDING <= kChunkPadding);

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The code unit of an escape \uXXXX at `at`, or -1.
int escaped_unit(std::string_view line, std::size_t at) {
  if (at + 6 > line.size() || line[at] != '\\' || line[at + 1] != 'u') return -1;
  int unit = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const int digit = hex_digit(line[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

// Overwrites every escape of half a surrogate pair by \ufffd; says whether there was one.
bool replace_lone_surrogates(std::string& line) {
  bool found = false;
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] != '\\') continue;
    const int unit = escaped_unit(line, i);
    if (unit < 0xD800 || unit > 0xDFFF) {
      ++i;  // the escaped character is not the start of another escape
      continue;
    }
    const int next = escaped_unit(line, i + 6);
    if (unit <= 0xDBFF && next >= 0xDC00 && next <= 0xDFFF) {
      i += 11;
      continue;
    }
    line.replace(i, 6, "\\ufffd");
    found = true;
    i += 5;
  }
  return found;
}

enum class Field { user, item, item_else, rating, text, time, title };

struct Slot {
  std::string key, quoted;
  Field field;
};

}  // namespace

struct JsonLines::State {
  simdjson::dom::parser parser;
  std::vector<Slot> slots;
  InvalidUtf8 invalid;
  std::string repaired;  // the line with its faults replaced, padded
  std::string storage;
  char numbers[3][24];  // ids given as whole numbers
  std::string reason;   // why the last line was refused

  template <class Whole, std::size_t N>
  static std::string_view decimal(Whole number, char (&buffer)[N]) {
    return {buffer,
            static_cast<std::size_t>(std::to_chars(buffer, buffer + N, number).ptr - buffer)};
  }

  // An id's text: a string as it is, a whole number in decimal.
  bool read_id(const element& value, const char* what, int buffer, std::string_view& id) {
    switch (value.type()) {
      case element_type::STRING:
        id = value.get_string().value_unsafe();
        return true;
      case element_type::INT64:
        id = decimal(value.get_int64().value_unsafe(), numbers[buffer]);
        return true;
      case element_type::UINT64:
        id = decimal(value.get_uint64().value_unsafe(), numbers[buffer]);
        return true;
      case element_type::NULL_VALUE:
        id = {};
        return true;
      default:
        reason = fmt::format("{} is neither text nor a whole number", what);
        return false;
    }
  }

  bool read_number(const element& value, const char* what, double& number) {
    number = std::numeric_limits<double>::quiet_NaN();
    if (value.is_null()) return true;
    if (value.is_number()) {
      number = value.get_double().value_unsafe();
      return true;
    }
    if (value.is_string()) {
      const std::string_view text = value.get_string().value_unsafe();
      number = parse_number(text);
      if (!std::isnan(number)) return true;
      reason = fmt::format("{} '{}' is not a number", what, text.substr(0, 40));
      return false;
    }
    reason = fmt::format("{} is not a number", what);
    return false;
  }

  // The line's own bytes where they are those of `text`, as they are unless an escape was read.
  static std::string_view in_place(std::string_view text, std::string_view line,
                                   std::string_view quoted_key) {
    const std::size_t key = line.find(quoted_key);
    if (key == std::string_view::npos) return text;
    const std::size_t quote = std::min(line.find('"', key + quoted_key.size()), line.size() - 1);
    const std::string_view there = line.substr(quote + 1, text.size());
    return there == text ? there : text;
  }

  bool read_text(const element& value, std::string_view& text) {
    if (value.is_null()) {
      text = {};
      return true;
    }
    if (value.is_string()) {
      text = value.get_string().value_unsafe();
      return true;
    }
    reason = "the review text is not text";
    return false;
  }

  bool read(const element& document, std::string_view line, RawReview& review) {
    simdjson::dom::object object;
    if (document.get_object().get(object)) {
      reason = "not a JSON object";
      return false;
    }
    std::string_view item_else;
    for (const auto& [key, value] : object) {
      for (const Slot& slot : slots) {
        if (key != slot.key) continue;
        bool fine = true;
        switch (slot.field) {
          case Field::user:
            fine = read_id(value, "the user", 0, review.user);
            break;
          case Field::item:
            fine = read_id(value, "the item", 1, review.item);
            break;
          case Field::item_else:
            fine = read_id(value, "the item", 2, item_else);
            break;
          case Field::rating:
            fine = read_number(value, "the rating", review.rating);
            break;
          case Field::text:
            fine = read_text(value, review.text);
            review.text = in_place(review.text, line, slot.quoted);
            break;
          case Field::time:
            fine = read_number(value, "the time", review.time);
            break;
          case Field::title:
            review.title =
                value.is_string() ? value.get_string().value_unsafe() : std::string_view();
            break;
        }
        if (!fine) return false;
      }
    }
    if (review.item.empty()) review.item = item_else;
    return true;
  }

  // Parses one line, repairing its UTF-8 where asked. `line` must be padded.
  bool parse_line(std::string_view line, RawReview& review) {
    element document;
    simdjson::error_code failure = parser.parse(line.data(), line.size(), false).get(document);
    if (failure) {
      std::size_t replaced = 0;
      repaired = well_formed(line, storage, replaced);
      const bool bytes = replaced > 0;
      const bool surrogates = replace_lone_surrogates(repaired);
      if (invalid == InvalidUtf8::refuse || !(bytes || surrogates)) {
        reason = bytes ? kNotUtf8
                 : surrogates && failure == simdjson::STRING_ERROR
                     ? "half a surrogate pair in a string (--invalid-utf8 replace reads it with "
                       "U+FFFD)"
                     : fmt::format("not JSON: {}", simdjson::error_message(failure));
        return false;
      }
      const std::size_t size = repaired.size();
      repaired.append(kChunkPadding, '\0');
      failure = parser.parse(repaired.data(), size, false).get(document);
      if (failure) {
        reason = fmt::format("not JSON: {}", simdjson::error_message(failure));
        return false;
      }
    }
    return read(document, line, review);
  }
};

JsonLines::JsonLines(ObjectKeys keys, InvalidUtf8 invalid) : state_(std::make_unique<State>()) {
  state_->invalid = invalid;
  const std::pair<std::string, Field> all[] = {
      {keys.user, Field::user},     {keys.item, Field::item}, {keys.item_else, Field::item_else},
      {keys.rating, Field::rating}, {keys.text, Field::text}, {keys.time, Field::time},
      {keys.title, Field::title}};
  for (const auto& [key, field] : all) {
    if (!key.empty()) state_->slots.push_back({key, '"' + key + '"', field});
  }
}

JsonLines::~JsonLines() = default;

int64_t JsonLines::parse(std::string_view chunk, RawReviewSink& sink) {
  int64_t line_number = 0;
  for (; !chunk.empty(); ++line_number) {
    const std::size_t end = std::min(chunk.find('\n'), chunk.size());
    const std::string_view line = chunk.substr(0, end);
    chunk.remove_prefix(std::min(end + 1, chunk.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    RawReview review;
    if (state_->parse_line(line, review)) {
      sink.accept(review, line_number);
    } else {
      sink.reject(line_number, state_->reason);
    }
  }
  return line_number;
}

std::vector<std::string> json_keys(std::string_view line) {
  simdjson::dom::parser parser;
  std::string storage;
  std::size_t replaced = 0;
  std::string repaired(well_formed(line, storage, replaced));
  replace_lone_surrogates(repaired);
  const simdjson::padded_string padded(repaired);
  simdjson::dom::object object;
  std::vector<std::string> keys;
  if (parser.parse(padded).get_object().get(object)) return keys;
  for (const auto& field : object) keys.emplace_back(field.key);
  return keys;
}

}  // namespace cfaa
