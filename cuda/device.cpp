#include "cuda/device.h"

#include <fmt/format.h>

#include "cuda/check.h"
#include "cuda/libraries.h"
#include "host/core/error.h"
#include "host/core/out_of_memory.h"
#ifdef CFAA_EMULATED
#include "emulator/control.h"
#endif

namespace cfaa::cuda {
namespace {

constexpr int kSlowDouble = 16;  // times float; 2 on GPUs for computing, 64 on those for graphics
constexpr int kOldestMajor = 8;  // the kernels are compiled for sm_80 and later

// What NVIDIA recommends: 4 MiB, and 32 MiB from Hopper on.
std::size_t blas_workspace_bytes(const cudaDeviceProp& properties) {
  return std::size_t{properties.major >= 9 ? 32u : 4u} << 20;
}

}  // namespace

std::string why_unavailable(int gpu) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    return "no GPU can be used: " + describe(status);
  }
  if (count == 0) return "there is no GPU in this machine";
  if (gpu >= count) {
    return count == 1 ? "there is one GPU in this machine, cuda:0"
                      : "the GPUs of this machine are cuda:0 to cuda:" + std::to_string(count - 1);
  }
  cudaDeviceProp properties{};
  const cudaError_t found = cudaGetDeviceProperties(&properties, gpu);
  if (found != cudaSuccess) {
    cudaGetLastError();
    return "no GPU can be used: " + describe(found);
  }
  if (properties.major < kOldestMajor) {
    return std::string(properties.name) + " is older than compute capability 8.0";
  }
  return why_libraries_missing();
}

std::unique_ptr<DeviceRuntime> make_runtime(int gpu) {
  return std::make_unique<Device>(gpu);
}

Device::Device(int gpu) {
  CFAA_CUDA_CHECK(cudaSetDevice(gpu));
  CFAA_CUDA_CHECK(cudaGetDeviceProperties(&properties_, gpu));
  int ratio = 0;
  CFAA_CUDA_CHECK(cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio, gpu));
  slow_double_ = ratio >= kSlowDouble;
  use_lane(0);
#ifdef CFAA_EMULATED
  watches_memory_ = !emulator::merged_arena();
#endif
}

Device::~Device() {
  for (const Lane& lane : lanes_) {
    if (lane.stream != nullptr) CFAA_CUDA_WARN(cudaStreamSynchronize(lane.stream));
  }
  for (const cudaEvent_t event : events_) {
    if (event != nullptr) CFAA_CUDA_WARN(cudaEventDestroy(event));
  }
  if (solver_ != nullptr) CFAA_CUDA_WARN(cusolverDnDestroy(solver_));
  for (const Lane& lane : lanes_) {
    if (lane.blas != nullptr) CFAA_CUDA_WARN(cublasDestroy(lane.blas));
    if (lane.blas_workspace != nullptr) CFAA_CUDA_WARN(cudaFree(lane.blas_workspace));
    if (lane.stream != nullptr) CFAA_CUDA_WARN(cudaStreamDestroy(lane.stream));
  }
}

void Device::use_lane(std::size_t lane) {
  cudaStream_t& stream = lanes_.at(lane).stream;
  if (stream == nullptr) {
    CFAA_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  lane_ = lane;
}

std::string Device::description() const {
  return properties_.name;
}

void* Device::allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes == 0 ? 1 : bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    CFAA_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    const auto megabytes = [](std::size_t count) {
      return fmt::format("{:.1f} MB", static_cast<double>(count) / 1e6);
    };
    throw OutOfMemory(
        fmt::format("there is no room for {} on {}, which has {} of {} free", megabytes(bytes),
                    description(), megabytes(free), megabytes(total)),
        bytes);
  }
  CFAA_CUDA_CHECK(status);
  return memory;
}

// Work queued on the stream may still use the memory: cudaFree waits for it.
void Device::release(void* memory) noexcept {
  CFAA_CUDA_WARN(cudaFree(memory));
}

void Device::copy_from_host(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  CFAA_CUDA_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream()));
}

void Device::copy_to_host(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  CFAA_CUDA_CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream()));
}

void Device::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  CFAA_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()));
}

void Device::fill_zero(void* device, std::size_t bytes) {
  if (bytes == 0) return;
  CFAA_CUDA_CHECK(cudaMemsetAsync(device, 0, bytes, stream()));
}

void Device::synchronize() {
  CFAA_CUDA_CHECK(cudaStreamSynchronize(stream()));
}

void* Device::allocate_host(std::size_t bytes) {
  void* memory = nullptr;
  CFAA_CUDA_CHECK(cudaMallocHost(&memory, bytes == 0 ? 1 : bytes));
  return memory;
}

void Device::release_host(void* memory) noexcept {
  CFAA_CUDA_WARN(cudaFreeHost(memory));
}

std::uint64_t Device::mark() {
  cudaEvent_t& event = events_[marks_ % kMarks];
  if (event == nullptr) {
    CFAA_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  CFAA_CUDA_CHECK(cudaEventRecord(event, stream()));
  return marks_++;
}

void Device::wait_for(std::uint64_t mark) {
  CFAA_CUDA_CHECK(cudaEventSynchronize(events_[mark % kMarks]));
}

#ifdef CFAA_EMULATED
// NaN in every floating-point type, -1 in every integer.
void Device::spoil(void* device, std::size_t bytes) {
  if (bytes == 0) return;
  CFAA_CUDA_CHECK(cudaMemsetAsync(device, 0xFF, bytes, stream()));
}
#endif

cublasHandle_t Device::blas() {
  Lane& lane = lanes_[lane_];
  if (lane.blas == nullptr) {
    CFAA_CUDA_CHECK(cublasCreate(&lane.blas));
    CFAA_CUDA_CHECK(cublasSetStream(lane.blas, lane.stream));
    // fp32; TF32 only on request
    CFAA_CUDA_CHECK(cublasSetMathMode(lane.blas, CUBLAS_DEFAULT_MATH));
    const std::size_t bytes = blas_workspace_bytes(properties_);
    lane.blas_workspace = allocate(bytes);
    CFAA_CUDA_CHECK(cublasSetWorkspace(lane.blas, lane.blas_workspace, bytes));
  }
  return lane.blas;
}

cusolverDnHandle_t Device::solver() {
  if (solver_ == nullptr) {
    CFAA_CUDA_CHECK(cusolverDnCreate(&solver_));
    CFAA_ASSERT(lane_ == 0);
    CFAA_CUDA_CHECK(cusolverDnSetStream(solver_, stream()));
  }
  return solver_;
}

WorkspaceBytes Device::workspace_of(const Eigenproblem& problem,
                                    const std::function<WorkspaceBytes()>& ask) {
  const auto known = workspaces_.find(problem);
  return known != workspaces_.end() ? known->second : workspaces_[problem] = ask();
}

}  // namespace cfaa::cuda
