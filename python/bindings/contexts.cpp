#include "contexts.h"

#include <cfaa/device/make_context.h>

#include <atomic>
#include <map>

namespace cfaa::python {
namespace {

struct Kept {
  std::shared_ptr<Context> context;
  int threads = 0;
};

std::atomic<int> threads_wanted{0};

std::map<std::string, Kept>& contexts_of_this_thread() {
  thread_local std::map<std::string, Kept> contexts;
  return contexts;
}

}  // namespace

std::shared_ptr<Context> context_of(const std::string& device) {
  Kept& kept = contexts_of_this_thread()[device];
  const int threads = threads_wanted;
  if (!kept.context || kept.threads != threads) {
    kept = {make_context(device, {.threads = threads}), threads};
  }
  return kept.context;
}

void set_threads(int count) {
  threads_wanted = count;
}

void forget_contexts() {
  // Never destroyed: ending a thread pool would wait for threads that are not in this process.
  for (auto& [device, kept] : contexts_of_this_thread()) {
    new std::shared_ptr<Context>(std::move(kept.context));
  }
  contexts_of_this_thread().clear();
}

}  // namespace cfaa::python
