#include "host/text/text_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/data/readers/delimited.h"
#include "host/io/utf8.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr std::size_t kBlock = 1 << 20;

// Takes two fields of the outermost object and lets everything else pass, without building it.
class FieldReader : public nlohmann::json_sax<json> {
 public:
  FieldReader(const TextLinesOptions& options, std::string& text, std::string& id)
      : options_(options), text_(text), id_(id) {}

  bool found() const { return found_; }
  bool found_id() const { return found_id_; }
  bool absent() const { return absent_; }
  bool is_object() const { return is_object_; }
  std::size_t error_at() const { return error_at_; }

  bool null() override {
    if (wanted_) absent_ = true;
    return other();
  }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(std::to_string(value)); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool string(string_t& value) override {
    if (wanted_) text_ = value, found_ = true, absent_ = false;
    if (wanted_id_) id_ = value, found_id_ = true;
    wanted_ = wanted_id_ = false;
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_++ == 0) is_object_ = true;
    return other();
  }
  bool key(string_t& name) override {
    wanted_ = depth_ == 1 && name == options_.field;
    wanted_id_ = depth_ == 1 && !options_.id_field.empty() && name == options_.id_field;
    if (wanted_) absent_ = false;
    return true;
  }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override { return ++depth_, other(); }
  bool end_array() override { return --depth_, true; }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    error_at_ = position;
    return false;
  }

 private:
  bool number(std::string digits) {
    const bool id = wanted_id_;
    other();
    if (id) id_ = std::move(digits), found_id_ = true;
    return true;
  }
  bool other() {
    if (wanted_) found_ = false;
    if (wanted_id_) found_id_ = false;
    wanted_ = wanted_id_ = false;
    return true;
  }

  const TextLinesOptions& options_;
  std::string& text_;
  std::string& id_;
  int depth_ = 0;
  bool wanted_ = false, wanted_id_ = false, found_ = false, found_id_ = false, is_object_ = false;
  bool absent_ = true;  // not there, or null
  std::size_t error_at_ = 0;
};

int hex_value(std::string_view four) {
  int value = 0;
  for (const char c : four) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return four.size() == 4 ? value : -1;
}

// Writes \ufffd over escaped surrogates without a partner, which a strict parser refuses.
std::size_t repair_surrogates(std::string& line) {
  std::size_t repaired = 0;
  const auto unit_at = [&](std::size_t i) {
    return i + 6 <= line.size() && line[i] == '\\' && line[i + 1] == 'u'
               ? hex_value(std::string_view(line).substr(i + 2, 4))
               : -1;
  };
  for (std::size_t i = line.find('\\'); i < line.size(); i = line.find('\\', i)) {
    const int unit = unit_at(i);
    if (unit < 0xD800 || unit > 0xDFFF) {
      i += 2;
      continue;
    }
    const int next = unit_at(i + 6);
    if (unit < 0xDC00 && next >= 0xDC00 && next <= 0xDFFF) {
      i += 12;
      continue;
    }
    line.replace(i, 6, "\\ufffd");
    ++repaired;
    i += 6;
  }
  return repaired;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::string_view without_newline(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  return line;
}

}  // namespace

LineFormat format_by_name(const std::string& path) {
  std::string_view name = path;
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) {
      name.remove_suffix(packed.size());
      break;
    }
  }
  if (name.ends_with(".csv")) return LineFormat::kCsv;
  if (name.ends_with(".tsv")) return LineFormat::kTsv;
  if (name.ends_with(".txt")) return LineFormat::kPlain;
  for (const std::string_view json_name : {".jsonl", ".json", ".ndjson"}) {
    if (name.ends_with(json_name)) return LineFormat::kJson;
  }
  return LineFormat::kDetect;
}

TextLines::TextLines(const std::string& path, TextLinesOptions options, ByteRange range)
    : path_(path == "-" ? "standard input" : path),
      options_(std::move(options)),
      from_(range.begin),
      stream_(std::make_unique<InputStream>(path, true, kBlock, range)),
      chunks_(*stream_, kBlock) {
  if (from_ == 0) return;
  CFAA_ASSERT(options_.format == LineFormat::kPlain || options_.format == LineFormat::kJson);
  open_ = true;
  first_ = false;
}

// Blank lines say nothing about the format; a first block of nothing else is plain text.
void TextLines::open_format() {
  open_ = true;
  const std::string_view head = chunks_.head();
  const std::size_t mark = head.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  if (options_.format == LineFormat::kDetect) {
    options_.format = LineFormat::kPlain;
    const std::size_t begin = head.find_first_not_of(" \t\r\n", mark);
    if (begin != head.npos && head[begin] == '{') {
      const std::size_t end = head.find('\n', begin);
      std::size_t replaced = 0;
      // A first line longer than the block is taken at its first character's word.
      if (end == head.npos ||
          json::accept(repair_json(head.substr(begin, end - begin), replaced))) {
        options_.format = LineFormat::kJson;
      }
    }
  }
  switch (options_.format) {
    case LineFormat::kCsv:
    case LineFormat::kTsv:
      rule_ = {.quoted = true, .delimiter = options_.format == LineFormat::kCsv ? ',' : '\t'};
      chunks_.set_rule(rule_);
      read_header(head, mark);
      break;
    case LineFormat::kJson:
      chunks_.skip(mark);
      break;
    default:
      if (!options_.id_field.empty()) {
        throw Error(fmt::format(
            "{} has no fields, so --id-field {} names none; JSON lines, CSV and TSV have them",
            path_, options_.id_field));
      }
  }
}

void TextLines::read_header(std::string_view head, std::size_t mark) {
  head.remove_prefix(mark);
  std::size_t length = record_length(head, rule_);
  if (length == 0) length = head.size();
  std::string_view record = without_newline(head.substr(0, length));
  if (record.ends_with('\r')) record.remove_suffix(1);
  if (const std::string reason = split_fields(record, rule_, fields_, scratch_); !reason.empty()) {
    throw Error(fmt::format("{} line 1: {}", path_, reason));
  }
  columns_ = fields_.size();
  const auto column = [&](const std::string& name, const char* flag) {
    const auto found = std::find(fields_.begin(), fields_.end(), name);
    if (found == fields_.end()) {
      throw Error(fmt::format("{} has no column '{}'; {} names one of: {}", path_, name, flag,
                              fmt::join(fields_, ", ")));
    }
    return static_cast<std::size_t>(found - fields_.begin());
  };
  text_column_ = column(options_.field, "--field");
  if (!options_.id_field.empty()) id_column_ = column(options_.id_field, "--id-field");
  const std::string_view header = head.substr(0, length);
  line_number_ = static_cast<std::size_t>(std::count(header.begin(), header.end(), '\n'));
  chunks_.skip(mark + length);
}

bool TextLines::next_record(std::string_view& record) {
  while (rest_.empty()) {
    if (!chunks_.next(chunk_)) return false;
    rest_ = chunk_.text();
  }
  std::size_t length = record_length(rest_, rule_);
  if (length == 0) length = rest_.size();
  record = rest_.substr(0, length);
  rest_.remove_prefix(length);
  record_line_ = line_number_ + 1;
  line_number_ +=
      rule_.quoted ? static_cast<std::size_t>(std::count(record.begin(), record.end(), '\n')) : 1;
  record = without_newline(record);
  return true;
}

bool TextLines::next(std::string_view& text) {
  if (!open_) open_format();
  for (std::string_view record; next_record(record);) {
    if (options_.format == LineFormat::kJson) {
      if (is_blank(record)) continue;
      text = text_of_json(record);
    } else {
      if (record.ends_with('\r')) record.remove_suffix(1);
      if (options_.format == LineFormat::kPlain) {
        text = well_formed(record, repaired_, replaced_);
      } else {
        if (record.empty()) continue;
        text = text_of_fields(record);
      }
    }
    first_ = false;
    return true;
  }
  return false;
}

std::string TextLines::place() const {
  if (from_ > 0) return fmt::format("{} line {} from byte {} on", path_, record_line_, from_);
  return fmt::format("{} line {}", path_, record_line_);
}

std::string_view TextLines::repair_json(std::string_view line, std::size_t& replaced) {
  line = well_formed(line, repaired_, replaced);
  if (line.find("\\ud") != line.npos || line.find("\\uD") != line.npos) {
    if (line.data() != repaired_.data()) repaired_ = line;
    replaced += repair_surrogates(repaired_);
    line = repaired_;
  }
  return line;
}

std::string_view TextLines::text_of_json(std::string_view line) {
  line = repair_json(line, replaced_);
  FieldReader reader(options_, text_, id_);
  if (!json::sax_parse(line, &reader)) {
    throw Error(
        fmt::format("{} is not valid JSON near byte {}; every line must be an object with "
                    "the field '{}' (--format plain reads lines as they are)",
                    place(), reader.error_at(), options_.field));
  }
  const bool may_lack = options_.absent_is_empty && !first_ && reader.absent();
  if (!reader.is_object() || !(reader.found() || may_lack)) {
    throw Error(
        fmt::format("{} has no string field '{}'; --field names another", place(), options_.field));
  }
  if (!options_.id_field.empty() && !reader.found_id()) {
    throw Error(
        fmt::format("{} has no text or whole number in the field '{}'; --id-field names "
                    "another",
                    place(), options_.id_field));
  }
  if (!reader.found()) text_.clear();
  return text_;
}

std::string_view TextLines::text_of_fields(std::string_view record) {
  record = well_formed(record, repaired_, replaced_);
  if (const std::string reason = split_fields(record, rule_, fields_, scratch_); !reason.empty()) {
    throw Error(fmt::format("{}: {}", place(), reason));
  }
  if (fields_.size() != columns_) {
    throw Error(
        fmt::format("{} has {} fields where the header has {}", place(), fields_.size(), columns_));
  }
  if (!options_.id_field.empty()) id_ = fields_[id_column_];
  return fields_[text_column_];
}

}  // namespace cfaa
