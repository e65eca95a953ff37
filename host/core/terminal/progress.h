#pragma once

// Progress of long work: one line that is drawn over on a terminal, cut to its width; a plain line
// every few seconds otherwise.
//
//   Progress progress("training", total_steps, {"step"});
//   progress.resume_at(state.step);  // done by an earlier process: no part of the rate
//   progress.advance(1);             // from any thread
//   progress.finish();

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace cfaa {

// What is counted: {"review"}, or {"MB", 1e-6} of bytes. A scaled unit has no plural.
struct ProgressUnit {
  std::string one;
  double scale = 1;
};

// One moment of the work; `progress_line` is what is shown of it.
struct ProgressMoment {
  std::string label;
  ProgressUnit unit;
  int64_t total = 0;    // 0: not known
  int64_t done = 0;     // an earlier process's part included
  int64_t resumed = 0;  // that part
  double seconds = 0;   // of this process
  bool last = false;
  std::string rate;  // shown instead of units a second: "10.3k tokens/s"
  std::string note;  // pieces with ", " between them, the most important first
};

// Fits into `columns`: a bar is as long as there is room for, then pieces of the note are left out
// from the end, then the bar, the rest of the note, the rate and the time. 0 columns: a plain line,
// whole.
std::string progress_line(const ProgressMoment& moment, int columns);

class Progress {
 public:
  // total 0: not known.
  Progress(std::string label, int64_t total, ProgressUnit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Counts what an earlier process did. Before the first advance().
  void resume_at(int64_t done);
  void advance(int64_t count);
  // What is shown instead of units a second: rate(10300, "token").
  void rate(double per_second, const std::string& unit);
  void note(const std::string& text);  // "loss 0.31, L_O 0.02"
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  bool due(std::atomic<int64_t>& next, int64_t pause) const;
  void show(bool draw, bool write, bool last);

  ProgressMoment moment_;  // but for what changes with every advance()
  const Clock::time_point start_ = Clock::now();
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> next_draw_, next_line_;  // milliseconds since start_
  std::mutex mutex_;
  bool finished_ = false;
  std::atomic<bool> shown_{false};
};

}  // namespace cfaa
