#pragma once

// Two kinds of failure. A user error is an `Error`: one sentence that names the file, row, flag or
// shape and says what to do; the program prints it and exits with code 2. A programmer error is a
// failed CFAA_ASSERT: it names the expression and aborts.

#include <stdexcept>
#include <string>

namespace cfaa {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace cfaa

#define CFAA_ASSERT(expression) \
  ((expression) ? (void)0 : ::cfaa::assertion_failed(#expression, __FILE__, __LINE__))
