#pragma once

// Standard error as a person reads it: lines that stay and, on a terminal, one status line below
// them that is drawn over. Everything the program says on standard error goes through here, so that
// a message never lands in the middle of a progress bar. Any thread may call.

#include <mutex>
#include <string>

namespace cfaa {

class Terminal {
 public:
  static Terminal& standard_error();

  bool is_terminal() const;
  bool has_color() const;
  // Columns, asked for each time: a window may be resized. Where it cannot be known: 80.
  int width() const;

  // A line that stays, above the status line.
  void line(const std::string& text);
  // Draws the status line over the one before, cut to the width. Does nothing on a file or a pipe.
  void status(const std::string& text);
  // The status line becomes a line that stays.
  void keep_status();

 private:
  // What takes the status line off the screen.
  std::string erasure() const;

  std::mutex mutex_;
  std::string status_;  // as drawn; "": none
};

// Whether a descriptor is a terminal that may be coloured: not where NO_COLOR
// (https://no-color.org) is set or TERM is "dumb".
bool takes_color(int descriptor);

// Columns of standard output; 0 where it is a file or a pipe, which takes lines of any length.
int output_columns();

// A line broken at spaces so that none is longer than `columns`, where its words allow it; what
// follows the first begins with `indent` spaces. 0 columns: as it is.
std::string wrapped(const std::string& line, int columns, int indent = 2);

// The first `columns` characters of UTF-8 text.
std::string cut_to_columns(const std::string& text, int columns);

}  // namespace cfaa
