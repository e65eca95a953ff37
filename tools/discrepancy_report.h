#pragma once

// What `cfaa_gpu discrepancy` shows to people.

#include <nlohmann/json_fwd.hpp>

#include "tools/embedding_comparison.h"

namespace cfaa::tools {

// Of two files.
void print_comparison(const ComparisonReport& report);

// Of a run: users and items side by side.
void print_run_comparison(const nlohmann::json& fields);

}  // namespace cfaa::tools
