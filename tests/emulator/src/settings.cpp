#include "settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "fail.h"

namespace emulator {
namespace {

constexpr std::size_t KiB = 1024;

Limits limits_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::sm_90:
      return {"sm_90", 9, 0, 1024, 48 * KiB, 227 * KiB, 228 * KiB, 2048, 32, 132, 50 << 20, 2};
    case Architecture::sm_120:
      return {"sm_120", 12, 0, 1024, 48 * KiB, 99 * KiB, 100 * KiB, 1536, 24, 170, 96 << 20, 64};
    case Architecture::sm_80:
      break;
  }
  return {"sm_80", 8, 0, 1024, 48 * KiB, 163 * KiB, 164 * KiB, 2048, 32, 108, 40 << 20, 2};
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local int chosen_device = 0;

}  // namespace

Settings::Settings() : limits(limits_of(Architecture::sm_80)) {
  threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (const char* value = std::getenv("CFAA_EMULATOR_SEED")) {
    seed = std::strtoull(value, nullptr, 10);
  }
  if (const char* value = std::getenv("CFAA_EMULATOR_THREADS")) {
    threads = std::max(1, std::atoi(value));
  }
  if (const char* value = std::getenv("CFAA_EMULATOR_SHARED_CHECKS")) {
    shared_checks = std::strcmp(value, "0") != 0;
  }
  if (const char* value = std::getenv("CFAA_EMULATOR_ARENA")) {
    if (std::strcmp(value, "merged") != 0 && std::strcmp(value, "pieces") != 0) {
      fail("CFAA_EMULATOR_ARENA is %s; it must be merged or pieces", value);
    }
    merged_arena = std::strcmp(value, "merged") == 0;
  }
  if (const char* value = std::getenv("CFAA_EMULATOR_ARCH")) {
    const std::string_view name = value;
    if (name == "sm_90") {
      limits = limits_of(Architecture::sm_90);
    } else if (name == "sm_120") {
      limits = limits_of(Architecture::sm_120);
    } else if (name != "sm_80") {
      fail("CFAA_EMULATOR_ARCH is %s; it must be sm_80, sm_90 or sm_120", value);
    }
  }
}

Settings& settings() {
  static Settings instance;
  return instance;
}

std::recursive_mutex& runtime_lock() {
  static std::recursive_mutex lock;
  return lock;
}

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

int current_device() {
  return chosen_device;
}

void set_architecture(Architecture architecture) {
  settings().limits = limits_of(architecture);
}
void set_shared_memory(std::size_t bytes) {
  settings().limits.shared_optin = bytes;
}
void set_seed(std::uint64_t seed) {
  settings().seed = seed;
}
void set_threads(int threads) {
  settings().threads = std::max(1, threads);
}
void set_shared_checks(bool on) {
  settings().shared_checks = on;
}
void set_merged_arena(bool on) {
  settings().merged_arena = on;
}
bool merged_arena() {
  return settings().merged_arena;
}
void set_library_capture_refused(bool cublas, bool tensorrt) {
  settings().refuse_blas_capture = cublas;
  settings().refuse_tensorrt_capture = tensorrt;
}
void set_attention_lengths_refused(bool refused) {
  settings().refuse_attention_lengths = refused;
}
void set_tensorrt_version(int version) {
  settings().tensorrt_version = version;
}
void set_memory_limit(std::size_t bytes) {
  settings().memory_limit = bytes;
}
Counters counters() {
  Locked locked(runtime_lock());
  return settings().counters;
}

}  // namespace emulator

using namespace emulator;

extern "C" {

cudaError_t cudaGetLastError(void) {
  return std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError(void) {
  return last_error;
}

namespace {
struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
#define CFAA_ERROR(error, text) \
  { error, #error, text }
constexpr ErrorText error_texts[] = {
    CFAA_ERROR(cudaSuccess, "no error"),
    CFAA_ERROR(cudaErrorInvalidValue, "invalid argument"),
    CFAA_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    CFAA_ERROR(cudaErrorInitializationError, "initialization error"),
    CFAA_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    CFAA_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    CFAA_ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
    CFAA_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    CFAA_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    CFAA_ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient"),
    CFAA_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    CFAA_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    CFAA_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    CFAA_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    CFAA_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    CFAA_ERROR(cudaErrorNotReady, "device not ready"),
    CFAA_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    CFAA_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    CFAA_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    CFAA_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    CFAA_ERROR(cudaErrorNotSupported, "operation not supported"),
    CFAA_ERROR(cudaErrorStreamCaptureUnsupported,
               "operation not permitted when stream is capturing"),
    CFAA_ERROR(cudaErrorStreamCaptureInvalidated,
               "operation failed due to a previous error during capture"),
    CFAA_ERROR(cudaErrorStreamCaptureMerge,
               "operation would result in a merge of separate capture sequences"),
    CFAA_ERROR(cudaErrorStreamCaptureUnmatched,
               "capture was not ended in the same stream as it began"),
    CFAA_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    CFAA_ERROR(cudaErrorStreamCaptureIsolation,
               "dependency created on uncaptured work in another stream"),
    CFAA_ERROR(cudaErrorStreamCaptureImplicit,
               "operation would make the legacy stream depend on a capturing blocking stream"),
    CFAA_ERROR(cudaErrorCapturedEvent,
               "operation not permitted on an event last recorded in a capturing stream"),
    CFAA_ERROR(cudaErrorStreamCaptureWrongThread,
               "attempt to terminate a thread-local capture sequence from another thread"),
    CFAA_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef CFAA_ERROR
}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  for (const ErrorText& entry : error_texts) {
    if (entry.error == error) return entry.name;
  }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  for (const ErrorText& entry : error_texts) {
    if (entry.error == error) return entry.text;
  }
  return "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = chosen_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count) return remember(cudaErrorInvalidDevice);
  chosen_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device) {
  if (device < 0 || device >= device_count) return remember(cudaErrorInvalidDevice);
  const Limits& limits = settings().limits;
  *prop = {};
  std::snprintf(prop->name, sizeof(prop->name), "emulated %s", limits.name);
  prop->totalGlobalMem = settings().memory_limit;
  prop->sharedMemPerBlock = limits.shared_default;
  prop->regsPerBlock = 65536;
  prop->warpSize = 32;
  prop->maxThreadsPerBlock = limits.max_threads;
  prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024;
  prop->maxThreadsDim[2] = 64;
  prop->maxGridSize[0] = 2147483647;
  prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
  prop->totalConstMem = 65536;
  prop->major = limits.major;
  prop->minor = limits.minor;
  prop->multiProcessorCount = limits.multiprocessors;
  prop->concurrentKernels = 1;
  prop->pciDeviceID = device;
  prop->asyncEngineCount = 1;
  prop->unifiedAddressing = 1;
  prop->memoryBusWidth = 64;
  prop->l2CacheSize = limits.l2_bytes;
  prop->maxThreadsPerMultiProcessor = limits.max_threads_per_multiprocessor;
  prop->sharedMemPerMultiprocessor = limits.shared_per_multiprocessor;
  prop->regsPerMultiprocessor = 65536;
  prop->sharedMemPerBlockOptin = limits.shared_optin;
  prop->maxBlocksPerMultiProcessor = limits.max_blocks_per_multiprocessor;
  prop->reservedSharedMemPerBlock = 1024;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device) {
  cudaDeviceProp prop;
  if (cudaError_t error = cudaGetDeviceProperties(&prop, device)) return error;
  switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = prop.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxBlockDimX:
      *value = prop.maxThreadsDim[0];
      break;
    case cudaDevAttrMaxBlockDimY:
      *value = prop.maxThreadsDim[1];
      break;
    case cudaDevAttrMaxBlockDimZ:
      *value = prop.maxThreadsDim[2];
      break;
    case cudaDevAttrMaxGridDimX:
      *value = prop.maxGridSize[0];
      break;
    case cudaDevAttrMaxGridDimY:
      *value = prop.maxGridSize[1];
      break;
    case cudaDevAttrMaxGridDimZ:
      *value = prop.maxGridSize[2];
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(prop.sharedMemPerBlock);
      break;
    case cudaDevAttrWarpSize:
      *value = prop.warpSize;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = prop.regsPerBlock;
      break;
    case cudaDevAttrClockRate:
      *value = 1000000;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = prop.multiProcessorCount;
      break;
    case cudaDevAttrMemoryClockRate:
      *value = 1000000;
      break;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = prop.memoryBusWidth;
      break;
    case cudaDevAttrL2CacheSize:
      *value = prop.l2CacheSize;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = prop.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
      *value = settings().limits.single_to_double;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = prop.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = prop.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(prop.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      *value = prop.regsPerMultiprocessor;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(prop.sharedMemPerBlockOptin);
      break;
    default:
      return remember(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  *runtimeVersion = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* driverVersion) {
  *driverVersion = CUDART_VERSION;
  return cudaSuccess;
}

}  // extern "C"
