#include "host/device/make_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/cpu/blas.h"
#include "host/cpu/blas_kernels.h"
#include "host/cpu/blas_memory.h"
#if CFAA_HAS_CUDA
#include "cuda/device.h"
#endif

namespace cfaa {
namespace {

// The number behind "cuda:"; 0 for "cuda" and "auto".
int gpu_number(const std::string& name) {
  if (name == "auto" || name == "cuda") return 0;
  int number = -1;
  const char *begin = name.data() + std::min<std::size_t>(5, name.size()),
             *end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (!name.starts_with("cuda:") || error != std::errc() || stop != end || number < 0) {
    throw Error("--device " + name + ": there is no such device; use auto, cuda, cuda:1 or cpu");
  }
  return number;
}

std::unique_ptr<DeviceRuntime> make_runtime(const std::string& name) {
  if (name == "cpu") return make_cpu_runtime();
  [[maybe_unused]] const int gpu = gpu_number(name);
#if CFAA_HAS_CUDA
  const std::string missing = cuda::why_unavailable(gpu);
  if (missing.empty()) {
#if CFAA_EMULATED
    // The emulated device is for tests: only a caller who asks for it gets it.
    if (name == "auto") return make_cpu_runtime();
#endif
    return cuda::make_runtime(gpu);
  }
  if (name == "auto") return make_cpu_runtime();
  throw Error("--device " + name + ": " + missing + "; use --device cpu");
#else
  if (name == "auto") return make_cpu_runtime();
  throw Error("--device " + name +
              ": this program was built without CUDA; use --device cpu, or build the preset "
              "'cuda'");
#endif
}

}  // namespace

std::unique_ptr<Context> make_context(const std::string& name, ContextOptions options) {
  cpu::use_one_blas_thread();
  if (const std::string kernels = cpu::better_blas_kernels(); !kernels.empty()) {
    log_once(
        fmt::format("OpenBLAS does not know this processor and runs old kernels; set "
                    "OPENBLAS_CORETYPE={} before the program starts for several times the speed",
                    kernels));
  }
  auto context = std::make_unique<Context>(make_runtime(name), options);
  cpu::take_blas_buffers(context->threads().threads());
  return context;
}

std::string device_label(Context& context) {
  if (context.device() == DeviceKind::cpu) return "cpu";
#if CFAA_EMULATED
  return "cuda (emulated)";
#else
  return "cuda";
#endif
}

}  // namespace cfaa
