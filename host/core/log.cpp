#include "host/core/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <set>

#include "host/core/error.h"
#include "host/core/terminal/listener.h"
#include "host/core/terminal/printable.h"
#include "host/core/terminal/terminal.h"

namespace cfaa {
namespace {

// Lines on standard error, or what a listener is told. Only the word that names the level is
// coloured.
class TerminalSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    Terminal& terminal = Terminal::standard_error();
    const std::string text(message.payload.data(), message.payload.size());
    if (const auto listener = current_listener()) {
      // Progress reaches it by itself.
      if (message.level != spdlog::level::debug) {
        const auto level = spdlog::level::to_string_view(message.level);
        listener->message(std::string(level.data(), level.size()), text);
      }
      return;
    }
    // Progress is drawn on a terminal, and only written where there is none.
    if (message.level == spdlog::level::debug && terminal.is_terminal()) return;
    if (message.level == spdlog::level::warn) {
      terminal.line((terminal.has_color() ? "\033[33mwarning:\033[0m " : "warning: ") + text);
    } else if (message.level == spdlog::level::err) {
      terminal.line((terminal.has_color() ? "\033[31mcfaa_gpu:\033[0m " : "cfaa_gpu: ") + text);
    } else {
      terminal.line(text);
    }
  }
  void flush_() override {}
};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> shared = [] {
    auto made = std::make_shared<spdlog::logger>("cfaa_gpu", std::make_shared<TerminalSink>());
    made->set_level(spdlog::level::debug);
    return made;
  }();
  return *shared;
}

}  // namespace

void log_info(const std::string& message) {
  logger().info("{}", printable(message));
}

void log_warning(const std::string& message) {
  logger().warn("{}", printable(message));
}

void log_error(const std::string& message) {
  logger().error("{}", printable(message));
}

void log_progress(const std::string& line) {
  logger().debug("{}", line);
}

void log_once(const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard<std::mutex> lock(mutex);
  if (said.insert(message).second) log_info(message);
}

void log_quietly() {
  logger().sinks()[0]->set_level(spdlog::level::warn);
}

bool log_is_quiet() {
  return logger().sinks()[0]->level() == spdlog::level::warn ||
         logger().level() == spdlog::level::err;
}

void log_errors_only() {
  logger().set_level(spdlog::level::err);
}

void log_to_file(const std::string& path) {
  try {
    auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    file->set_pattern("%Y-%m-%d %H:%M:%S %l: %v");
    logger().sinks().push_back(std::move(file));
  } catch (const spdlog::spdlog_ex&) {
    throw Error("--log-file " + path +
                ": cannot be written; give a file in a folder that is there");
  }
  // What is there after a crash is what the log is for.
  logger().flush_on(spdlog::level::debug);
}

}  // namespace cfaa
