#if CFAA_HAS_TENSORRT

#include "cuda/tensorrt/library.h"

#include <utility>

#include "host/core/log.h"

namespace cfaa::cuda {

// Called by TensorRT's threads, and may not throw: a message that cannot be kept is lost.
void TensorRTLog::log(Severity severity, const char* message) noexcept {
  try {
    if (severity == Severity::kERROR || severity == Severity::kINTERNAL_ERROR) {
      const std::lock_guard<std::mutex> lock(mutex_);
      error_ = message;
    } else if (severity == Severity::kWARNING) {
      log_once(std::string("TensorRT: ") + message);
    }
  } catch (...) {
  }
}

std::string TensorRTLog::take_error() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string error = std::exchange(error_, "");
  return error.empty() ? "it gave no reason" : error;
}

std::string tensorrt_version() {
  const int version = getInferLibVersion();
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

void throw_refused(TensorRTLog& log, const std::string& what) {
  throw Error("TensorRT refused to " + what + ": " + log.take_error());
}

}  // namespace cfaa::cuda

#endif
