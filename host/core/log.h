#pragma once

// What the program says while it works: one line each, to stderr, never to stdout.

#include <string>

namespace cfaa {

void log_info(const std::string& message);
void log_warning(const std::string& message);

// Once per process for each distinct message.
void log_once(const std::string& message);

}  // namespace cfaa
