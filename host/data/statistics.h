#pragma once

// What a prepared directory holds, in numbers: the paper's Table 3 and what one asks next.

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/data/dataset.h"

namespace cfaa {

struct SplitStatistics {
  int64_t interactions = 0, positives = 0, users = 0, items = 0;
  int64_t cold_users = 0, cold_items = 0;  // in this split without a training interaction
};

struct DomainStatistics {
  std::string name;
  int64_t users = 0, items = 0, interactions = 0, positives = 0;
  double density = 0;  // interactions / (users * items)
  std::array<SplitStatistics, 3> splits;
  int64_t reviews_with_text = 0;  // of the training split
  double review_bytes_mean = 0;   // of those with text
  int64_t review_bytes_median = 0, review_bytes_longest = 0;
  double top_item_share = 0;               // of all interactions
  double top_tenth_share = 0;              // of the most popular tenth of the items
  std::vector<int64_t> item_interactions;  // descending: the long tail
};

struct Statistics {
  DomainStatistics source, target;
  int64_t common_users = 0, common_items = 0;  // raw ids in both domains
};

// Reads the training texts' lengths beside the data.
Statistics compute_statistics(const Dataset& data);

nlohmann::json to_json(const Statistics& statistics);

// A plot of `values` (descending) over their rank, both logarithmic: `height` lines of at most
// `width` columns, then the axis.
std::vector<std::string> long_tail_plot(const std::vector<int64_t>& values, int width, int height);

}  // namespace cfaa
