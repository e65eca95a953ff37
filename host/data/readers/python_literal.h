#pragma once

// The "loose" lines of the 2014 Amazon release: each is the repr() of a Python dict, not JSON. A
// strict parser of literals, never an evaluator: dicts, lists, tuples, strings ('', "", u''),
// decimal numbers, None, True, False. Whatever it accepts means what ast.literal_eval says;
// refused, though Python takes them: bytes, raw and triple-quoted strings, joined strings 'a' 'b',
// \N{...}, hexadecimal, complex numbers, underscores in numbers, sets, comments. Two \u escapes
// that make a surrogate pair (Python 2's narrow builds) are one character.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/data/readers/json_lines.h"
#include "host/data/review.h"

namespace cfaa {

struct PythonValue {
  enum class Kind { none, boolean, number, text, list, tuple, dict };
  Kind kind = Kind::none;
  bool boolean = false;
  std::string text;             // of text: UTF-8; of a number: its digits as written, with the sign
  bool lone_surrogate = false;  // of text: half a surrogate pair, read as U+FFFD
  std::vector<PythonValue> elements;  // of a list, a tuple; of a dict: key, value, key, value, ...
};

// Parses one whole literal. Returns "" or what is wrong, with the byte.
std::string parse_python_literal(std::string_view text, PythonValue& value);

// Hands every line of the chunk to the sink and returns how many lines there were.
int64_t parse_python_lines(std::string_view chunk, const ObjectKeys& keys, InvalidUtf8 invalid,
                           RawReviewSink& sink);

}  // namespace cfaa
