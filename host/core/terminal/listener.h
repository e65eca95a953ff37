#pragma once

// Who wants to know what the library says while it works, where standard error is not read: a
// notebook, a server. While there is a listener nothing reaches standard error.

#include <functional>
#include <memory>
#include <string>

#include "host/core/terminal/progress.h"

namespace cfaa {

// Called from any thread; neither may call the library.
struct Listener {
  std::function<void(const std::string& level, const std::string& message)> message;
  std::function<void(const ProgressMoment&)> progress;
};

void set_listener(std::shared_ptr<const Listener> listener);  // null: nobody
std::shared_ptr<const Listener> current_listener();

}  // namespace cfaa
