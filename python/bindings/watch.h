#pragma once

// Long work on a thread of its own, while the thread of Python that asked for it waits: that one
// hears Ctrl-C and calls back with what the work says, so that nothing else ever needs the GIL.

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace cfaa::python {

// What the work is given.
class Watch {
 public:
  // Set by Ctrl-C, or where a callback raised an exception: the work should keep what it has and
  // end.
  const std::atomic<bool>& stop() const { return stop_; }
  // Tells the caller something: a kind ("metrics", "step", ...) and its text. From any thread.
  void tell(const std::string& kind, std::string text);

 private:
  friend void watch(nanobind::handle, const std::function<void(Watch&)>&);
  void deliver(nanobind::handle listener);

  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::string, std::string>> told_;
  bool finished_ = false;
};

// Runs the work. `listener(kind, text)` is called with what it tells, and with the library's
// messages ("info", "warning") and progress ("progress", JSON). Throws what the work throws, or the
// exception of Ctrl-C or of the listener once the work has ended.
void watch(nanobind::handle listener, const std::function<void(Watch&)>& work);

}  // namespace cfaa::python
