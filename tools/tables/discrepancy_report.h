#pragma once

// What `cfaa_gpu discrepancy` shows to people.

#include <string>

#include "host/run/discrepancy.h"

namespace cfaa::tools {

// Of two files.
void print_discrepancy(const Discrepancy& found);

// Of a run: users and items side by side.
void print_run_discrepancy(const std::string& run, const RunDiscrepancy& found);

}  // namespace cfaa::tools
