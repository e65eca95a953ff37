#pragma once

// Texts from a file or standard input, one a line: plain lines, or JSON objects with the text in a
// field. Reads in blocks, so memory is bounded by the longest line.

#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cfaa {

enum class LineFormat {
  kDetect,  // JSON if the first line that is not blank is a JSON object
  kPlain,   // a line is a text, without its \n or \r\n; an empty line is an empty text
  kJson,    // blank lines are passed over
};

class TextLines {
 public:
  /// "-" is standard input. Error if the file cannot be opened.
  TextLines(const std::string& path, LineFormat format, std::string field = "text");

  /// The next text, valid until the next call; false at the end. Bytes that are not UTF-8 and
  /// unpaired surrogates become U+FFFD. Error, naming the line, for JSON that is none or lacks the
  /// field.
  bool next(std::string_view& text);

  /// Ill-formed pieces replaced so far.
  std::size_t replaced() const { return replaced_; }

 private:
  void detect_format();
  bool next_line(std::string_view& line);
  std::string_view repair_json(std::string_view line, std::size_t& replaced);
  std::string_view text_of(std::string_view line);
  std::string place() const;

  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdin) std::fclose(file);
    }
  };

  std::string path_, field_;
  LineFormat format_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of the buffer
  std::size_t line_number_ = 0, replaced_ = 0;
  std::deque<std::string> held_;  // lines read while the format was not known yet
  std::string held_line_, repaired_, text_;
};

}  // namespace cfaa
