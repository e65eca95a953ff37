#pragma once

// A Context is used by one thread at a time and is costly to make: every thread of Python keeps
// one for each device that it has computed on.

#include <cfaa/core/context.h>
#include <cfaa/device/caller_stream.h>

#include <memory>
#include <string>

namespace cfaa::python {

struct ThreadContext {
  std::shared_ptr<Context> context;
  std::shared_ptr<CallerStream> caller;  // of that context
  int gpu = 0;                           // its number
};

// The calling thread's of "cpu", "cuda:0", ... Valid as long as the pointers are held.
ThreadContext context_of(const std::string& device);

// Threads of the CPU that contexts made from now on compute with; 0: one per core. Those that are
// there are made again when they are next asked for.
void set_threads(int count);

// In a child of fork(): the worker threads of the contexts are not there, so that none may be used
// or ended.
void forget_contexts();

}  // namespace cfaa::python
