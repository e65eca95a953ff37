#include "host/eval/metric_name.h"

#include <fmt/format.h>

#include <charconv>

#include "host/core/error.h"
#include "host/eval/metrics.h"
#include "host/ops/top_k.h"

namespace cfaa {

MetricName parse_metric(const std::string& text, const std::string& origin) {
  const std::size_t at = std::min(text.find('@'), text.size());
  const char* end = text.data() + text.size();
  int64_t k = 0;
  const auto [next, failure] = std::from_chars(std::min(text.data() + at + 1, end), end, k);
  if (failure == std::errc() && next == end && k >= 1 && k <= kMaxTopK) {
    for (std::size_t m = 0; m < kMetrics; ++m) {
      if (text.substr(0, at) == kMetricNames[m]) return {m, k};
    }
  }
  throw Error(
      fmt::format("{} is '{}'; it must be one of {} and a length from 1 to {}, such as NDCG@10",
                  origin, text, fmt::join(kMetricNames, ", "), kMaxTopK));
}

}  // namespace cfaa
