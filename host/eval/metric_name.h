#pragma once

// "NDCG@10": a metric of host/eval/metrics.h and the length of the lists it is of.

#include <cstddef>
#include <cstdint>
#include <string>

namespace cfaa {

struct MetricName {
  std::size_t metric = 0;  // in kMetricNames
  int64_t k = 10;
};

// Error, beginning with `origin`, where it is not one of the metrics and a length from 1 to
// kMaxTopK.
MetricName parse_metric(const std::string& text, const std::string& origin);

}  // namespace cfaa
