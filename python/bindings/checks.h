#pragma once

// Refusals of arguments that have no option of the library's behind them.

#include <cstdint>
#include <string>

namespace cfaa::python {

// Error unless it is "target" or "source".
void check_domain(const std::string& name);

// Error, naming the argument, unless least <= value <= most.
void check_between(const char* name, int64_t value, int64_t least, int64_t most);

}  // namespace cfaa::python
