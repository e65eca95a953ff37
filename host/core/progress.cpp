#include "host/core/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace cfaa {
namespace {

constexpr int64_t kTerminalMillis = 100;
constexpr int64_t kPlainMillis = 5000;
constexpr int kBarWidth = 30;

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(std::string label, int64_t total, std::string unit, double unit_scale)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      unit_scale_(unit_scale),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      next_show_(terminal_ ? kTerminalMillis : kPlainMillis) {}

Progress::~Progress() {
  finish();
}

void Progress::advance(int64_t count) {
  done_.fetch_add(count, std::memory_order_relaxed);
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
  int64_t due = next_show_.load(std::memory_order_relaxed);
  if (now < due) return;
  const int64_t pause = terminal_ ? kTerminalMillis : kPlainMillis;
  if (next_show_.compare_exchange_strong(due, now + pause)) show(false);
}

void Progress::note(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  note_ = text;
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  // Work that was over before a first line was due leaves no line behind.
  if (shown_) show(true);
}

void Progress::show(bool last) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shown_ = true;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double done = static_cast<double>(done_.load()), total = static_cast<double>(total_);
  std::string line = label_ + ' ';
  if (total_ > 0) {
    const double share = std::min(1.0, done / total);
    if (terminal_) {
      const int full = static_cast<int>(share * kBarWidth);
      line += '[' + std::string(full, '=') + std::string(kBarWidth - full, ' ') + "] ";
    }
    line += fmt::format("{:3.0f} % ", 100 * share);
  }
  line += fmt::format("{:.6g} {}, {:.4g} {}/s, {}", done * unit_scale_, unit_,
                      done * unit_scale_ / std::max(seconds, 1e-9), unit_, clock_text(seconds));
  if (total_ > 0 && !last && done > 0) {
    line += ", " + clock_text(seconds * std::max(0.0, total - done) / done) + " left";
  }
  if (!note_.empty()) line += ", " + note_;
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s%s", line.c_str(), last ? "\n" : "");
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  std::fflush(stderr);
}

}  // namespace cfaa
