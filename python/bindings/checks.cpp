#include "checks.h"

#include <cfaa/core/error.h>
#include <fmt/format.h>

namespace cfaa::python {

void check_domain(const std::string& name) {
  if (name == "target" || name == "source") return;
  throw Error(fmt::format("domain: is '{}'; give 'target' or 'source'", name));
}

void check_between(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw Error(fmt::format("{}: is {}; give {} to {}", name, value, least, most));
}

}  // namespace cfaa::python
