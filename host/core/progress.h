#pragma once

// Progress of long work: a bar on a terminal, a plain line every few seconds otherwise.
//
//   Progress progress("reading", total_bytes, "MB", 1e-6);
//   progress.advance(n);             // from any thread
//   progress.finish();

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace cfaa {

class Progress {
 public:
  // total 0: unknown. Counts are shown times `unit_scale`, followed by `unit`.
  Progress(std::string label, int64_t total, std::string unit, double unit_scale = 1);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(int64_t count);
  void note(const std::string& text);  // shown after the numbers: "loss 0.31"
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void show(bool last);

  const std::string label_, unit_;
  const int64_t total_;
  const double unit_scale_;
  const bool terminal_;
  const Clock::time_point start_;
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> next_show_;  // milliseconds since start_
  std::mutex mutex_;
  std::string note_;
  bool finished_ = false;
  bool shown_ = false;
};

}  // namespace cfaa
