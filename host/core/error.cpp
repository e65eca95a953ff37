#include "host/core/error.h"

#include <cstdio>
#include <cstdlib>

namespace cfaa {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: this must hold: %s\n", file, line, expression);
  std::abort();
}

}  // namespace cfaa
