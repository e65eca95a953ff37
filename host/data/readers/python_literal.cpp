#include "host/data/readers/python_literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/io/utf8.h"

namespace cfaa {
namespace {

constexpr int kDeepest = 100;  // nested containers; CPython gives up at 200

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

class LiteralParser {
 public:
  explicit LiteralParser(std::string_view text) : text_(text) {}

  std::string run(PythonValue& value) {
    if (const std::size_t zero = text_.find('\0'); zero != std::string_view::npos) {
      at_ = zero;
      fail("a zero byte");  // as Python, which takes none even inside a string
      return failure_;
    }
    skip_space();
    if (!parse(value, 0)) return failure_;
    skip_space();
    if (at_ != text_.size()) {
      fail("something follows the literal");
      return failure_;
    }
    return "";
  }

 private:
  using Kind = PythonValue::Kind;

  bool fail(const std::string& what) {
    failure_ = fmt::format("not a Python literal at byte {} of the line: {}", at_ + 1, what);
    return false;
  }
  bool more() const { return at_ < text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void skip_space() {
    while (more() && (peek() == ' ' || peek() == '\t' || peek() == '\f')) ++at_;
  }

  bool parse(PythonValue& value, int depth) {
    if (depth > kDeepest) return fail("nested too deeply");
    const char c = peek();
    if (c == '{') return parse_dict(value, depth);
    if (c == '[') return parse_sequence(value, depth, ']');
    if (c == '(') return parse_sequence(value, depth, ')');
    if (c == '\'' || c == '"') return parse_text(value);
    if ((c == 'u' || c == 'U') && (peek(1) == '\'' || peek(1) == '"')) {
      ++at_;
      return parse_text(value);
    }
    if (is_digit(c) || c == '-' || c == '+' || c == '.') return parse_number_token(value);
    return parse_name(value);
  }

  bool parse_name(PythonValue& value) {
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) ||
                                  text_[end] == '_' || text_[end] & 0x80)) {
      ++end;
    }
    const std::string_view name = text_.substr(at_, end - at_);
    if (name == "None") {
      value.kind = Kind::none;
    } else if (name == "True" || name == "False") {
      value.kind = Kind::boolean;
      value.boolean = name == "True";
    } else {
      return fail(more() ? "expected a value" : "the line ends early");
    }
    at_ = end;
    return true;
  }

  std::size_t digits_from(std::size_t from) const {
    while (from < text_.size() && is_digit(text_[from])) ++from;
    return from;
  }

  bool parse_number_token(PythonValue& value) {
    value.kind = Kind::number;
    value.text.clear();
    if (peek() == '-' || peek() == '+') {
      if (peek() == '-') value.text.push_back('-');
      ++at_;
      skip_space();
    }
    const std::size_t whole_end = digits_from(at_);
    std::size_t end = whole_end;
    bool is_float = false;
    bool any_digit = end > at_;
    if (end < text_.size() && text_[end] == '.') {
      const std::size_t fraction_end = digits_from(end + 1);
      any_digit |= fraction_end > end + 1;
      end = fraction_end;
      is_float = true;
    }
    if (!any_digit) return fail("expected a number");
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
      const std::size_t exponent_end = digits_from(exponent);
      if (exponent_end == exponent) return fail("a number's exponent has no digits");
      end = exponent_end;
      is_float = true;
    }
    if (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) ||
                               text_[end] == '_' || text_[end] == '.' || text_[end] & 0x80)) {
      return fail("a number is followed by a letter");
    }
    const std::string_view digits = text_.substr(at_, end - at_);
    // Python refuses 007 but takes 0, 00 and 07.5.
    if (!is_float && digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string_view::npos) {
      return fail("a whole number starts with 0");
    }
    value.text += digits;
    at_ = end;
    return true;
  }

  // \ooo, \xhh, \uhhhh, \Uhhhhhhhh; at_ stands on the character after the backslash.
  bool parse_code_point(PythonValue& value) {
    const char kind = text_[at_];
    uint32_t code = 0;
    if (kind >= '0' && kind <= '7') {
      for (int i = 0; i < 3 && peek() >= '0' && peek() <= '7'; ++i) {
        code = code * 8 + static_cast<uint32_t>(text_[at_++] - '0');
      }
    } else {
      ++at_;
      if (!parse_hex(kind == 'x' ? 2 : kind == 'u' ? 4 : 8, code)) return false;
      const bool high = code >= 0xD800 && code <= 0xDBFF;
      if (high && peek() == '\\' && (peek(1) == 'u' || peek(1) == 'U')) {
        const std::size_t before = at_;
        const int digits = peek(1) == 'u' ? 4 : 8;
        at_ += 2;
        uint32_t low = 0;
        if (!parse_hex(digits, low)) return false;
        if (low >= 0xDC00 && low <= 0xDFFF) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else {
          at_ = before;
        }
      }
    }
    if (code > 0x10FFFF) return fail("an escape lies past U+10FFFF");
    if (code >= 0xD800 && code <= 0xDFFF) value.lone_surrogate = true;
    append_utf8(value.text, code);
    return true;
  }

  bool parse_hex(int digits, uint32_t& code) {
    code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const int digit = more() ? hex_value(text_[at_]) : -1;
      if (digit < 0) return fail("an escape has too few hexadecimal digits");
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    return true;
  }

  bool parse_text(PythonValue& value) {
    value.kind = Kind::text;
    value.text.clear();
    const char quote = text_[at_];
    if (peek(1) == quote && peek(2) == quote) return fail("triple quotes are not read");
    ++at_;
    for (;;) {
      const std::size_t plain = text_.find_first_of(quote == '"' ? "\"\\" : "'\\", at_);
      if (plain == std::string_view::npos) return fail("a string is not closed");
      value.text.append(text_.substr(at_, plain - at_));
      at_ = plain + 1;
      if (text_[plain] == quote) return true;
      if (!more()) return fail("a string is not closed");
      if (!parse_escape(value)) return false;
    }
  }

  bool parse_escape(PythonValue& value) {
    static constexpr std::string_view kNames = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const char c = text_[at_];
    if (const std::size_t i = kNames.find(c); i != std::string_view::npos) {
      value.text.push_back(kMeanings[i]);
      ++at_;
      return true;
    }
    if ((c >= '0' && c <= '7') || c == 'x' || c == 'u' || c == 'U') return parse_code_point(value);
    if (c == 'N') return fail("named characters \\N{...} are not read");
    value.text.push_back('\\');  // Python keeps the backslash of an escape it does not know
    return true;
  }

  bool parse_sequence(PythonValue& value, int depth, char close) {
    value.kind = close == ']' ? Kind::list : Kind::tuple;
    value.elements.clear();
    ++at_;
    bool comma = false;
    for (;;) {
      skip_space();
      if (peek() == close && more()) {
        ++at_;
        // (1) is 1 in brackets, (1,) a tuple.
        if (close == ')' && value.elements.size() == 1 && !comma) {
          PythonValue inner = std::move(value.elements[0]);
          value = std::move(inner);
        }
        return true;
      }
      if (!value.elements.empty() && !comma) return fail("expected a comma");
      value.elements.emplace_back();
      if (!parse(value.elements.back(), depth + 1)) return false;
      comma = take_comma();
    }
  }

  bool parse_dict(PythonValue& value, int depth) {
    value.kind = Kind::dict;
    value.elements.clear();
    ++at_;
    bool comma = false;
    for (;;) {
      skip_space();
      if (peek() == '}') {
        ++at_;
        return true;
      }
      if (!value.elements.empty() && !comma) return fail("expected a comma");
      value.elements.emplace_back();
      if (!parse(value.elements.back(), depth + 1)) return false;
      const Kind key = value.elements.back().kind;
      if (key == Kind::list || key == Kind::dict || key == Kind::tuple) {
        return fail("a container is the key of a dict");
      }
      skip_space();
      if (peek() != ':') return fail("expected a colon");
      ++at_;
      skip_space();
      value.elements.emplace_back();
      if (!parse(value.elements.back(), depth + 1)) return false;
      comma = take_comma();
    }
  }

  bool take_comma() {
    skip_space();
    if (peek() != ',') return false;
    ++at_;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string failure_;
};

// The parts of a review in a dict. Returns "" or what is wrong.
std::string read_review(const PythonValue& dict, const ObjectKeys& keys, InvalidUtf8 invalid,
                        RawReview& review) {
  using Kind = PythonValue::Kind;
  if (dict.kind != Kind::dict) return "not a Python dict";
  std::string_view item_else;
  std::string reason;
  const auto id = [&](const PythonValue& value, const char* what, std::string_view& out) {
    if (value.kind == Kind::none) {
      out = {};
    } else if (value.kind == Kind::text || (value.kind == Kind::number &&
                                            value.text.find_first_of(".eE") == std::string::npos)) {
      out = value.text;
    } else {
      reason = fmt::format("{} is neither text nor a whole number", what);
    }
  };
  const auto number = [&](const PythonValue& value, const char* what, double& out) {
    out = std::numeric_limits<double>::quiet_NaN();
    if (value.kind == Kind::none) return;
    if (value.kind == Kind::text || value.kind == Kind::number) out = parse_number(value.text);
    if (std::isnan(out)) reason = fmt::format("{} is not a number", what);
  };
  for (std::size_t i = 0; i + 1 < dict.elements.size(); i += 2) {
    const std::string& key = dict.elements[i].text;
    // An empty key would match every part that has no name here.
    if (dict.elements[i].kind != Kind::text || key.empty()) continue;
    const PythonValue& value = dict.elements[i + 1];
    bool wanted = true;
    if (key == keys.user) {
      id(value, "the user", review.user);
    } else if (key == keys.item) {
      id(value, "the item", review.item);
    } else if (key == keys.item_else) {
      id(value, "the item", item_else);
    } else if (key == keys.rating) {
      number(value, "the rating", review.rating);
    } else if (key == keys.time) {
      number(value, "the time", review.time);
    } else if (key == keys.text) {
      if (value.kind != Kind::text && value.kind != Kind::none) {
        reason = "the review text is not text";
      }
      review.text = value.text;
    } else if (key == keys.title) {
      review.title = value.kind == Kind::text ? std::string_view(value.text) : std::string_view();
    } else {
      wanted = false;
    }
    if (wanted && value.lone_surrogate && invalid == InvalidUtf8::refuse) {
      reason = "half a surrogate pair in a string (--invalid-utf8 replace reads it with U+FFFD)";
    }
    if (!reason.empty()) return reason;
  }
  if (review.item.empty()) review.item = item_else;
  return "";
}

}  // namespace

std::string parse_python_literal(std::string_view text, PythonValue& value) {
  return LiteralParser(text).run(value);
}

int64_t parse_python_lines(std::string_view chunk, const ObjectKeys& keys, InvalidUtf8 invalid,
                           RawReviewSink& sink) {
  const bool clean = is_utf8(chunk);
  std::string repaired;
  int64_t line_number = 0;
  for (; !chunk.empty(); ++line_number) {
    const std::size_t end = std::min(chunk.find('\n'), chunk.size());
    std::string_view line = chunk.substr(0, end);
    chunk.remove_prefix(std::min(end + 1, chunk.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (!clean && !repair_utf8(line, invalid, repaired)) {
      sink.reject(line_number, kNotUtf8);
      continue;
    }
    PythonValue dict;
    std::string reason = parse_python_literal(line, dict);
    RawReview review;
    if (reason.empty()) reason = read_review(dict, keys, invalid, review);
    if (reason.empty()) {
      sink.accept(review, line_number);
    } else {
      sink.reject(line_number, std::move(reason));
    }
  }
  return line_number;
}

}  // namespace cfaa
