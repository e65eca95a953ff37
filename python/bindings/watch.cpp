#include "watch.h"

#include <cfaa/core/terminal/listener.h>

#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

namespace cfaa::python {
namespace nb = nanobind;
namespace {

using nlohmann::json;

constexpr auto kBetweenLooks = std::chrono::milliseconds(50);

// The library has one listener; several threads of Python may watch work at once, and are all told
// what it says.
class Watches {
 public:
  void add(Watch* watch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (watches_.empty()) set_listener(listener_);
    watches_.insert(watch);
  }
  void remove(Watch* watch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watches_.erase(watch);
    if (watches_.empty()) set_listener(nullptr);
  }

 private:
  void tell(const std::string& kind, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Watch* watch : watches_) watch->tell(kind, text);
  }

  static std::string text_of(const ProgressMoment& moment) {
    const json fields = {{"label", moment.label},      {"unit", moment.unit.one},
                         {"scale", moment.unit.scale}, {"total", moment.total},
                         {"done", moment.done},        {"resumed", moment.resumed},
                         {"note", moment.note},        {"last", moment.last}};
    return fields.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  std::mutex mutex_;
  std::set<Watch*> watches_;
  const std::shared_ptr<const Listener> listener_ = std::make_shared<Listener>(
      Listener{[this](const std::string& level, const std::string& text) { tell(level, text); },
               [this](const ProgressMoment& moment) { tell("progress", text_of(moment)); }});
};

Watches& watches() {
  static Watches all;
  return all;
}

}  // namespace

void Watch::tell(const std::string& kind, std::string text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  told_.emplace_back(kind, std::move(text));
  changed_.notify_one();
}

void Watch::deliver(nb::handle listener) {
  while (true) {
    std::pair<std::string, std::string> next;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (told_.empty()) return;
      next = std::move(told_.front());
      told_.pop_front();
    }
    if (!listener.is_none()) {
      listener(nb::str(next.first.data(), next.first.size()),
               nb::str(next.second.data(), next.second.size()));
    }
  }
}

void watch(nb::handle listener, const std::function<void(Watch&)>& work) {
  Watch told;
  std::exception_ptr failure, interruption;
  watches().add(&told);
  std::thread worker([&] {
    try {
      work(told);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(told.mutex_);
    told.finished_ = true;
    told.changed_.notify_one();
  });
  for (bool finished = false; !finished;) {
    {
      const nb::gil_scoped_release while_waiting;
      std::unique_lock<std::mutex> lock(told.mutex_);
      told.changed_.wait_for(lock, kBetweenLooks,
                             [&] { return told.finished_ || !told.told_.empty(); });
      finished = told.finished_;
    }
    if (interruption) continue;
    try {
      told.deliver(listener);
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    } catch (...) {
      interruption = std::current_exception();
      told.stop_ = true;
    }
  }
  {
    const nb::gil_scoped_release while_waiting;
    worker.join();
  }
  watches().remove(&told);
  if (interruption) std::rethrow_exception(interruption);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace cfaa::python
