#include "host/core/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <set>

namespace cfaa {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> shared = [] {
    auto made = spdlog::stderr_color_mt("cfaa_gpu");
    made->set_pattern("%^%v%$");
    return made;
  }();
  return *shared;
}

}  // namespace

void log_info(const std::string& message) {
  logger().info("{}", message);
}

void log_warning(const std::string& message) {
  logger().warn("warning: {}", message);
}

void log_once(const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard<std::mutex> lock(mutex);
  if (said.insert(message).second) log_info(message);
}

}  // namespace cfaa
