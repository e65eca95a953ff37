#include "tools/command_line/text_command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/terminal/printable.h"

namespace cfaa::tools {
namespace {

std::string printable_lines(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    shown += printable(text.substr(0, end));
    if (end < text.size()) shown.push_back('\n');
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shown;
}

}  // namespace

void TextInputFlags::add_to(CLI::App& command) {
  command.add_option("file", path, "texts, one a line; '-' is standard input")
      ->capture_default_str();
  command.add_option("--format", format, "auto, plain (lines) or json (objects, one a line)")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "plain", "json"}));
  command.add_option("--field", field, "the field of a JSON object that holds the text")
      ->capture_default_str();
}

TextLines TextInputFlags::open() const {
  const LineFormat lines = format == "json"    ? LineFormat::kJson
                           : format == "plain" ? LineFormat::kPlain
                                               : LineFormat::kDetect;
  return TextLines(path, {.format = lines, .field = field});
}

TextOutput::TextOutput() : to_terminal_(::isatty(STDOUT_FILENO) == 1) {
  buffer_.reserve(kBlock + 4096);
}

TextOutput::~TextOutput() {
  if (to_terminal_) buffer_ = printable_lines(buffer_);
  if (!buffer_.empty()) std::fwrite(buffer_.data(), 1, buffer_.size(), stdout);
}

void TextOutput::write() {
  if (to_terminal_) buffer_ = printable_lines(buffer_);
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), stdout) != buffer_.size()) {
    throw Error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
  buffer_.clear();
}

void TextOutput::finish() {
  write();
  if (std::fflush(stdout) != 0) {
    throw Error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
}

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

void print_timing(TextLines lines, int rounds, const std::string& unit,
                  const std::function<std::size_t(const std::vector<std::string>&)>& pass) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> texts;
  std::size_t bytes = 0, units = 0;
  for (std::string_view text; lines.next(text); bytes += text.size()) texts.emplace_back(text);
  double best = std::numeric_limits<double>::infinity(), best_cpu = best;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    const std::clock_t cpu_start = std::clock();
    units = pass(texts);
    const double cpu = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    best_cpu = std::min(best_cpu, cpu);
  }
  fmt::print(
      "{{\"texts\": {}, \"bytes\": {}, \"{}\": {}, \"seconds\": {:.9f}, \"cpu_seconds\": "
      "{:.6f}}}\n",
      texts.size(), bytes, unit, units, best, best_cpu);
}

void report_replaced(std::size_t replaced) {
  if (replaced == 0) return;
  log_warning(fmt::format("{} piece{} of the input {} not UTF-8 and became U+FFFD", replaced,
                          replaced == 1 ? "" : "s", replaced == 1 ? "was" : "were"));
}

}  // namespace cfaa::tools
