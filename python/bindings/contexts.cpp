#include "contexts.h"

#include <cfaa/device/make_context.h>

#include <atomic>
#include <map>
#include <string>

namespace cfaa::python {
namespace {

struct Kept {
  ThreadContext made;
  int threads = 0;
};

std::atomic<int> threads_wanted{0};

std::map<std::string, Kept>& contexts_of_this_thread() {
  thread_local std::map<std::string, Kept> contexts;
  return contexts;
}

}  // namespace

ThreadContext context_of(const std::string& device) {
  Kept& kept = contexts_of_this_thread()[device];
  const int threads = threads_wanted;
  if (!kept.made.context || kept.threads != threads) {
    std::shared_ptr<Context> context = make_context(device, {.threads = threads});
    // A CallerStream refers to its context, and so goes first.
    kept.made.caller = nullptr;
    const int gpu = device.starts_with("cuda:") ? std::stoi(device.substr(5)) : 0;
    kept = {{context, std::make_shared<CallerStream>(*context), gpu}, threads};
  }
  return kept.made;
}

void set_threads(int count) {
  threads_wanted = count;
}

void forget_contexts() {
  // Never destroyed: ending a thread pool would wait for threads that are not in this process.
  for (auto& [device, kept] : contexts_of_this_thread()) {
    new ThreadContext(std::move(kept.made));
  }
  contexts_of_this_thread().clear();
}

}  // namespace cfaa::python
