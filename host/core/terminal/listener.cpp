#include "host/core/terminal/listener.h"

#include <mutex>
#include <utility>

namespace cfaa {
namespace {

std::mutex mutex;
std::shared_ptr<const Listener> shared;

}  // namespace

void set_listener(std::shared_ptr<const Listener> listener) {
  const std::lock_guard<std::mutex> lock(mutex);
  shared = std::move(listener);
}

std::shared_ptr<const Listener> current_listener() {
  const std::lock_guard<std::mutex> lock(mutex);
  return shared;
}

}  // namespace cfaa
