#include "host/core/terminal/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "host/core/log.h"
#include "host/core/terminal/listener.h"
#include "host/core/terminal/quantity.h"
#include "host/core/terminal/terminal.h"

namespace cfaa {
namespace {

constexpr int64_t kDrawMillis = 100;
constexpr int64_t kLineMillis = 5000;
constexpr int kShortestBar = 10;
constexpr int kLongestBar = 30;

std::string count_text(const ProgressMoment& moment) {
  const std::string& unit = moment.unit.one;
  const double scale = moment.unit.scale;
  if (scale != 1) {
    const auto scaled = [&](int64_t count) { return static_cast<double>(count) * scale; };
    return moment.total > 0
               ? fmt::format("{:.1f} of {:.1f} {}", scaled(moment.done), scaled(moment.total), unit)
               : fmt::format("{:.1f} {}", scaled(moment.done), unit);
  }
  return moment.total > 0 ? fmt::format("{} of {}", moment.done, counted(moment.total, unit))
                          : counted(moment.done, unit);
}

std::string rate_text(const ProgressMoment& moment) {
  if (!moment.rate.empty()) return moment.rate;
  const auto here = static_cast<double>(moment.done - moment.resumed);
  if (here <= 0) return "";
  return fmt::format("{} {}{}/s", short_number(here * moment.unit.scale / moment.seconds),
                     moment.unit.one, moment.unit.scale == 1 ? "s" : "");
}

std::string time_text(const ProgressMoment& moment) {
  if (moment.last) return "in " + clock_text(moment.seconds);
  const int64_t here = moment.done - moment.resumed;
  if (moment.total == 0 || here <= 0) return clock_text(moment.seconds);
  const int64_t left = std::max<int64_t>(0, moment.total - moment.done);
  return clock_text(moment.seconds * static_cast<double>(left) / static_cast<double>(here)) +
         " left";
}

std::vector<std::string> pieces_of(const std::string& note) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < note.size();) {
    const std::size_t comma = std::min(note.find(", ", at), note.size());
    pieces.push_back(note.substr(at, comma - at));
    at = comma + 2;
  }
  return pieces;
}

// A bar of so many characters between its brackets; 0: none.
std::string assemble(const ProgressMoment& moment, const std::vector<std::string>& pieces,
                     int bar) {
  std::string line = moment.label;
  if (moment.total > 0) {
    const double share =
        std::min(1.0, static_cast<double>(moment.done) / static_cast<double>(moment.total));
    if (bar > 0) {
      const int full = static_cast<int>(share * bar);
      line += " [" + std::string(full, '=') + std::string(bar - full, ' ') + ']';
    }
    // Not 100 before it is done.
    line += fmt::format(" {:3} %", static_cast<int>(share * 100));
  }
  return fmt::format("{} {}", line, fmt::join(pieces, ", "));
}

}  // namespace

std::string progress_line(const ProgressMoment& moment, int columns) {
  const std::string rate = rate_text(moment), time = time_text(moment);
  std::vector<std::string> pieces = {count_text(moment)};
  if (!rate.empty()) pieces.push_back(rate);
  pieces.push_back(time);
  const std::size_t without_note = pieces.size();
  for (const std::string& piece : pieces_of(moment.note)) pieces.push_back(piece);
  if (columns == 0) return assemble(moment, pieces, 0);

  const auto room = [&](int bar) {
    return columns - static_cast<int>(assemble(moment, pieces, bar).size());
  };
  while (pieces.size() > without_note + 1 && room(kShortestBar) < 0) pieces.pop_back();
  if (moment.total > 0 && room(kShortestBar) >= 0) {
    return assemble(moment, pieces, std::min(kLongestBar, kShortestBar + room(kShortestBar)));
  }
  if (pieces.size() > without_note && room(0) < 0) pieces.pop_back();
  if (!rate.empty() && room(0) < 0) pieces.erase(pieces.begin() + 1);
  if (room(0) < 0) pieces.resize(1);
  return cut_to_columns(assemble(moment, pieces, 0), columns);
}

Progress::Progress(std::string label, int64_t total, ProgressUnit unit)
    : next_draw_(kDrawMillis), next_line_(kLineMillis) {
  moment_.label = std::move(label);
  moment_.total = total;
  moment_.unit = std::move(unit);
}

Progress::~Progress() {
  finish();
}

void Progress::resume_at(int64_t done) {
  moment_.resumed = done;
  done_.store(done);
}

bool Progress::due(std::atomic<int64_t>& next, int64_t pause) const {
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
  int64_t expected = next.load(std::memory_order_relaxed);
  return now >= expected && next.compare_exchange_strong(expected, now + pause);
}

void Progress::advance(int64_t count) {
  done_.fetch_add(count, std::memory_order_relaxed);
  const bool draw = due(next_draw_, kDrawMillis), write = due(next_line_, kLineMillis);
  if (draw || write) show(draw, write, false);
}

void Progress::rate(double per_second, const std::string& unit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  moment_.rate = fmt::format("{} {}s/s", short_number(per_second), unit);
}

void Progress::note(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  moment_.note = text;
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  // Work that was over before a first line was due leaves no line behind.
  if (shown_) show(true, true, true);
}

void Progress::show(bool draw, bool write, bool last) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Terminal& terminal = Terminal::standard_error();
  moment_.done = done_.load();
  moment_.seconds = std::max(std::chrono::duration<double>(Clock::now() - start_).count(), 1e-9);
  moment_.last = last;
  if (const auto listener = current_listener()) {
    listener->progress(moment_);
    shown_ = true;
    draw = false;
  }
  if (draw && terminal.is_terminal() && !log_is_quiet()) {
    terminal.status(progress_line(moment_, terminal.width() - 1));
    if (last) terminal.keep_status();
    shown_ = true;
  }
  if (write) {
    log_progress(progress_line(moment_, 0));
    shown_ = true;
  }
}

}  // namespace cfaa
