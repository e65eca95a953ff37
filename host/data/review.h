#pragma once

// One review as a reader finds it, before any step: views into the reader's buffers, valid until
// the sink returns. A reader hands every record of a chunk to a sink, or says why it cannot.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace cfaa {

constexpr std::size_t kLongestId = 1024;  // bytes of a raw id

struct RawReview {
  std::string_view user, item;
  std::string_view text;                                     // empty: the review has no text
  std::string_view title;                                    // of the item; empty: not known
  double rating = std::numeric_limits<double>::quiet_NaN();  // NaN: absent
  double time = std::numeric_limits<double>::quiet_NaN();    // s or ms since 1970; NaN: absent
};

// Takes what a reader finds.
class RawReviewSink {
 public:
  virtual ~RawReviewSink() = default;
  // `line` counts from 0 at the chunk's first line.
  virtual void accept(const RawReview& review, int64_t line) = 0;
  virtual void reject(int64_t line, std::string reason) = 0;
};

enum class InvalidUtf8 { refuse, replace };

inline constexpr const char* kNotUtf8 =
    "not valid UTF-8 (--invalid-utf8 replace reads it with U+FFFD)";

// Whether a record can be read: it is UTF-8, or was repaired into `storage`, which `record` then
// views.
bool repair_utf8(std::string_view& record, InvalidUtf8 invalid, std::string& storage);

// The number that a whole field spells ("4", "4.0", "1.4e9"), or NaN.
double parse_number(std::string_view text);

}  // namespace cfaa
