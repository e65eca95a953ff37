#include "host/core/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace cfaa {
namespace {

constexpr int kUnknownWidth = 80;

bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

int columns_of(const std::string& text) {
  int columns = 0;
  for (const char byte : text) columns += starts_character(byte);
  return columns;
}

// In one piece, so that a line is never seen half drawn.
void write(const std::string& bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

bool takes_color(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && (no_color == nullptr || *no_color == '\0') &&
         kind != nullptr && std::string_view(kind) != "dumb";
}

std::string cut_to_columns(const std::string& text, int columns) {
  std::size_t end = 0;
  for (int shown = 0; end < text.size(); ++end) {
    if (starts_character(text[end]) && ++shown > columns) break;
  }
  return text.substr(0, end);
}

std::string wrapped(const std::string& line, int columns, int indent) {
  if (columns <= indent || columns_of(line) <= columns) return line;
  std::string out;
  int used = 0;
  std::size_t at = 0;
  while (at < line.size()) {
    // A word with the spaces before it, which go where the line is broken.
    const std::size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const int spaces = static_cast<int>(word - at);
    const int length = columns_of(line.substr(word, end - word));
    if (at > 0 && used + spaces + length > columns) {
      out += '\n' + std::string(static_cast<std::size_t>(indent), ' ');
      used = indent;
    } else {
      out.append(line, at, word - at);
      used += spaces;
    }
    out.append(line, word, end - word);
    used += length;
    at = end;
  }
  return out;
}

int output_columns() {
  if (::isatty(STDOUT_FILENO) != 1) return 0;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknownWidth;
  return size.ws_col;
}

Terminal& Terminal::standard_error() {
  static Terminal terminal;
  return terminal;
}

bool Terminal::is_terminal() const {
  return ::isatty(STDERR_FILENO) == 1;
}

bool Terminal::has_color() const {
  return takes_color(STDERR_FILENO);
}

int Terminal::width() const {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknownWidth;
  return size.ws_col;
}

std::string Terminal::erasure() const {
  if (status_.empty()) return "";
  // A window that became narrower has wrapped what was drawn: its first row is further up.
  const int rows_above = (columns_of(status_) - 1) / std::max(1, width());
  const std::string up = rows_above > 0 ? "\033[" + std::to_string(rows_above) + 'A' : "";
  return up + "\r\033[J";
}

void Terminal::line(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  write(erasure() + wrapped(text, is_terminal() ? width() : 0) + '\n' + status_);
}

void Terminal::status(const std::string& text) {
  if (!is_terminal()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string erased = erasure();
  // The last column stays free: some terminals wrap as soon as it is written.
  status_ = cut_to_columns(text, std::max(1, width() - 1));
  write(erased + status_);
}

void Terminal::keep_status() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (status_.empty()) return;
  status_.clear();
  write("\n");
}

}  // namespace cfaa
