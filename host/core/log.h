#pragma once

// What the program says while it works: one line each, to standard error, never to standard output.

#include <string>

namespace cfaa {

void log_info(const std::string& message);
void log_warning(const std::string& message);
void log_error(const std::string& message);

// Once per process for each distinct message.
void log_once(const std::string& message);

// From now on nothing but warnings and errors, and no progress, reaches standard error.
void log_quietly();
bool log_is_quiet();

// From now on nothing but errors, and not to the log file either: of several processes that do the
// same, one talks.
void log_errors_only();

// From now on every message and now and then a line of progress is also appended to this file, with
// its time, whatever log_quietly() says. Throws Error naming the file where it cannot be written.
void log_to_file(const std::string& path);

// A line of progress: for the log file, and for standard error where that is not a terminal.
void log_progress(const std::string& line);

}  // namespace cfaa
