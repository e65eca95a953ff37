#pragma once

// What `tokenize` and `sentences` share: flags of their input, and output in large blocks.

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>

#include "host/text/text_lines.h"
#include "tools/command.h"

namespace cfaa::tools {

struct TextInputFlags {
  std::string path = "-", format = "auto", field = "text";

  void add_to(CLI::App& command);
  TextLines open() const;
};

/// Standard output through a buffer of a megabyte. Error if it cannot be written.
class TextOutput {
 public:
  TextOutput();
  ~TextOutput();  // after an error: what was done before it is still written
  TextOutput(const TextOutput&) = delete;
  TextOutput& operator=(const TextOutput&) = delete;

  std::string& buffer() { return buffer_; }

  /// Call after each text, and `finish` at the end.
  void settle() {
    if (buffer_.size() >= kBlock) write();
  }
  void finish();

 private:
  static constexpr std::size_t kBlock = 1 << 20;
  void write();

  std::string buffer_;
  bool to_terminal_;  // which obeys escape sequences; a pipe gets the bytes as they are
};

/// Appends `text` as a JSON string, quotes included.
void append_json_string(std::string& out, std::string_view text);

/// Appends a number.
inline void append_number(std::string& out, std::int64_t number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

/// For --time: reads every text, then runs `pass` over all of them `rounds` times and prints one
/// JSON line: texts, bytes, the unit's count, seconds and processor seconds of the fastest rounds
/// (the latter are what counts on a busy machine). Neither reading nor loading is in the time.
/// `pass` returns the number of units it made.
void print_timing(TextLines lines, int rounds, const std::string& unit,
                  const std::function<std::size_t(const std::vector<std::string>&)>& pass);

/// Says how many ill-formed pieces were replaced, if any.
void report_replaced(std::size_t replaced);

}  // namespace cfaa::tools
