#pragma once

// What the TensorRT files share: its log as ours, its version, and null returns as errors.
// Everything here and in tensorrt_*.h but tensorrt_network.h exists only where the build has
// TensorRT (CFAA_HAS_TENSORRT): 11.0 or later, or 10.15 and 10.16.

#if CFAA_HAS_TENSORRT

#include <NvInfer.h>

#include <memory>
#include <mutex>
#include <string>

#include "host/core/error.h"

// Older ones lack addNormalizationV2.
static_assert(NV_TENSORRT_MAJOR > 10 || (NV_TENSORRT_MAJOR == 10 && NV_TENSORRT_MINOR >= 15),
              "TensorRT 10.15 or later is needed");

namespace cfaa::cuda {

// TensorRT returns null and tells its log why: the last error is kept for our sentence. Warnings
// are said once; what it says beyond is for its developers.
class TensorRTLog final : public nvinfer1::ILogger {
 public:
  void log(Severity severity, const char* message) noexcept override;

  // The last error since the last call, or "it gave no reason".
  std::string take_error();

 private:
  std::mutex mutex_;
  std::string error_;
};

// Of the library that runs, which may be newer than the headers: "11.1.0".
std::string tensorrt_version();

// "TensorRT refused to <what>: <its reason>".
[[noreturn]] void throw_refused(TensorRTLog& log, const std::string& what);

// What a call made, where it made something.
template <class T>
T& required(T* made, TensorRTLog& log, const char* what) {
  if (made == nullptr) throw_refused(log, what);
  return *made;
}
template <class T>
std::unique_ptr<T> owned(T* made, TensorRTLog& log, const char* what) {
  return std::unique_ptr<T>(&required(made, log, what));
}
inline void require(bool done, TensorRTLog& log, const char* what) {
  if (!done) throw_refused(log, what);
}

}  // namespace cfaa::cuda

#endif
