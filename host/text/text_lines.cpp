#include "host/text/text_lines.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/utf8.h"

namespace cfaa {
namespace {

using nlohmann::json;

constexpr std::size_t kBlock = 1 << 20;

// Takes one field of the outermost object and lets everything else pass, without building it.
class FieldReader : public nlohmann::json_sax<json> {
 public:
  FieldReader(const std::string& field, std::string& text) : field_(field), text_(text) {}

  bool found() const { return found_; }
  bool is_object() const { return is_object_; }
  std::size_t error_at() const { return error_at_; }

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t) override { return other(); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool string(string_t& value) override {
    if (wanted_) text_ = value, found_ = true;
    wanted_ = false;
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_++ == 0) is_object_ = true;
    return other();
  }
  bool key(string_t& name) override {
    wanted_ = depth_ == 1 && name == field_;
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
  bool other() {
    if (wanted_) found_ = false;
    wanted_ = false;
    return true;
  }

  const std::string& field_;
  std::string& text_;
  int depth_ = 0;
  bool wanted_ = false, found_ = false, is_object_ = false;
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

}  // namespace

TextLines::TextLines(const std::string& path, LineFormat format, std::string field)
    : path_(path == "-" ? "standard input" : path), field_(std::move(field)), format_(format) {
  file_.reset(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file_) throw Error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  buffer_.resize(kBlock);
}

// Blank lines say nothing about the format; after many of them the file is taken for plain text.
void TextLines::detect_format() {
  constexpr std::size_t kMostBlankLines = 1000;
  format_ = LineFormat::kPlain;
  std::deque<std::string> lines;
  for (std::string_view line; lines.size() < kMostBlankLines && next_line(line);) {
    lines.emplace_back(line);
    if (is_blank(line)) continue;
    std::size_t replaced = 0;
    line = repair_json(line, replaced);
    if (line[line.find_first_not_of(" \t")] == '{' && json::accept(line)) {
      format_ = LineFormat::kJson;
    }
    break;
  }
  line_number_ = 0;
  held_ = std::move(lines);
}

bool TextLines::next_line(std::string_view& line) {
  if (!held_.empty()) {
    held_line_ = std::move(held_.front());
    held_.pop_front();
    line = held_line_;
    ++line_number_;
    return true;
  }
  std::size_t searched = 0;
  while (true) {
    const char* from = buffer_.data() + begin_;
    const void* newline = std::memchr(from + searched, '\n', end_ - begin_ - searched);
    if (newline != nullptr) {
      const auto size = static_cast<std::size_t>(static_cast<const char*>(newline) - from);
      line = {from, size};
      begin_ += size + 1;
      ++line_number_;
      return true;
    }
    searched = end_ - begin_;
    std::memmove(buffer_.data(), buffer_.data() + begin_, searched);
    begin_ = 0;
    end_ = searched;
    if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const std::size_t got =
        std::fread(buffer_.data() + end_, 1, buffer_.size() - end_, file_.get());
    if (got == 0) {
      if (std::ferror(file_.get())) {
        throw Error(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
      }
      if (end_ == 0) return false;
      line = {buffer_.data(), end_};
      begin_ = end_;
      ++line_number_;
      return true;
    }
    end_ += got;
  }
}

bool TextLines::next(std::string_view& text) {
  if (format_ == LineFormat::kDetect) detect_format();
  for (std::string_view line; next_line(line);) {
    if (format_ == LineFormat::kJson) {
      if (is_blank(line)) continue;
      text = text_of(line);
    } else {
      if (line.ends_with('\r')) line.remove_suffix(1);
      text = well_formed(line, repaired_, replaced_);
    }
    return true;
  }
  return false;
}

std::string TextLines::place() const {
  return fmt::format("{} line {}", path_, line_number_);
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

std::string_view TextLines::text_of(std::string_view line) {
  line = repair_json(line, replaced_);
  FieldReader reader(field_, text_);
  if (!json::sax_parse(line, &reader)) {
    throw Error(
        fmt::format("{} is not valid JSON near byte {}; every line must be an object with "
                    "the field '{}' (--format plain reads lines as they are)",
                    place(), reader.error_at(), field_));
  }
  if (!reader.is_object() || !reader.found()) {
    throw Error(fmt::format("{} has no string field '{}'; --field names another", place(), field_));
  }
  return text_;
}

}  // namespace cfaa
