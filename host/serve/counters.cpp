#include "host/serve/counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/core/version.h"

namespace cfaa {

void Counters::count(std::string_view path, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++responses_[{std::string(path), status}];
  Times& times = times_[std::string(path)];
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++times.within[static_cast<std::size_t>(bound - kBounds.begin())];
  times.sum += seconds;
}

void Counters::count_reload(bool worked) {
  const std::lock_guard lock(mutex_);
  ++(worked ? reloads_ : failed_reloads_);
}

std::string Counters::text() const {
  const std::lock_guard lock(mutex_);
  std::string text =
      "# HELP cfaa_requests_total Responses by path and status.\n"
      "# TYPE cfaa_requests_total counter\n";
  for (const auto& [of, count] : responses_) {
    text += fmt::format("cfaa_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", of.first,
                        of.second, count);
  }
  text +=
      "# HELP cfaa_request_seconds From a request's last byte to its response.\n"
      "# TYPE cfaa_request_seconds histogram\n";
  for (const auto& [path, times] : times_) {
    int64_t total = 0;
    for (std::size_t b = 0; b < kBounds.size(); ++b) {
      total += times.within[b];
      text += fmt::format("cfaa_request_seconds_bucket{{path=\"{}\",le=\"{}\"}} {}\n", path,
                          kBounds[b], total);
    }
    total += times.within.back();
    text += fmt::format("cfaa_request_seconds_bucket{{path=\"{}\",le=\"+Inf\"}} {}\n", path, total);
    text += fmt::format("cfaa_request_seconds_sum{{path=\"{}\"}} {}\n", path, times.sum);
    text += fmt::format("cfaa_request_seconds_count{{path=\"{}\"}} {}\n", path, total);
  }
  text += fmt::format(
      "# HELP cfaa_queued_requests Requests that wait for a worker.\n"
      "# TYPE cfaa_queued_requests gauge\n"
      "cfaa_queued_requests {}\n"
      "# HELP cfaa_reloads_total Runs replaced on disk and opened again.\n"
      "# TYPE cfaa_reloads_total counter\n"
      "cfaa_reloads_total{{result=\"ok\"}} {}\n"
      "cfaa_reloads_total{{result=\"failed\"}} {}\n"
      "# HELP cfaa_start_time_seconds When the server started, in seconds since 1970.\n"
      "# TYPE cfaa_start_time_seconds gauge\n"
      "cfaa_start_time_seconds {}\n"
      "# HELP cfaa_build_info The program's version.\n"
      "# TYPE cfaa_build_info gauge\n"
      "cfaa_build_info{{version=\"{}\"}} 1\n",
      queued.load(), reloads_, failed_reloads_,
      std::chrono::duration<double>(start_.time_since_epoch()).count(), version());
  return text;
}

}  // namespace cfaa
