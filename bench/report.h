#pragma once

// What `cfaa_gpu bench` found: a table for people, JSON for machines, and the comparison of two
// runs.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/measure.h"

namespace cfaa::bench {

// The most that this device did in this run, with all its threads: what rates are a share of.
struct Peaks {
  double bytes_per_second = 0;
  double flops_float = 0;
  double flops_double = 0;
  double exponentials = 0;  // float
};

struct Result {
  std::string name, detail, precision;
  Work work;
  Timing timing;
};

// The rate that says most about the work, with its unit and share of the peak; "" without one.
std::string rate_text(const Result& result, const Peaks& peaks);

void print_table(const std::vector<Result>& results, const Peaks& peaks);

nlohmann::json to_json(const std::vector<Result>& results, const Peaks& peaks);

// Prints old and new side by side, slower ones in red on a terminal. Returns how many are slower by
// more than `threshold` (0.1: ten per cent).
int print_comparison(const nlohmann::json& older, const nlohmann::json& newer, double threshold);

}  // namespace cfaa::bench
