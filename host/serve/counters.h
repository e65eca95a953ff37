#pragma once

// What a server has done so far, as Prometheus reads it.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace cfaa {

class Counters {
 public:
  // A response to a request for `path`, which took so long from its last byte on.
  void count(std::string_view path, int status, double seconds);
  void count_reload(bool worked);

  std::atomic<int64_t> queued{0};  // requests that wait for a worker

  // In the text format of Prometheus.
  std::string text() const;

 private:
  static constexpr std::array<double, 10> kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01,
                                                     0.025,  0.05,  0.1,    0.5,   2.5};
  struct Times {
    std::array<int64_t, kBounds.size() + 1> within{};  // the last: longer than every bound
    double sum = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> responses_;  // by path and status
  std::map<std::string, Times, std::less<>> times_;           // by path
  int64_t reloads_ = 0, failed_reloads_ = 0;
  const std::chrono::system_clock::time_point start_ = std::chrono::system_clock::now();
};

}  // namespace cfaa
