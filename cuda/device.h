#pragma once

// The GPU as a DeviceRuntime: memory, a stream, and the library handles, made on first use. An
// implementation in kernels/ reaches them through its Context:
//
//   cuda::Device& device = cuda::device_of(context);
//   launch(device.stream(), my_kernel, grid, block, shared_bytes, ...);
//   device.blas()  // cublasHandle_t on that stream, fp32 math, workspace set

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "host/core/context.h"
#include "host/core/device.h"

namespace cfaa::cuda {

// "" where this GPU can be used; otherwise the reason: no driver, no such GPU, one that is too old,
// a library that is missing.
std::string why_unavailable(int gpu = 0);

// Makes this GPU the thread's current one.
std::unique_ptr<DeviceRuntime> make_runtime(int gpu);

class Graph;

struct WorkspaceBytes {
  std::size_t device = 0, host = 0;
};

class Device final : public DeviceRuntime {
 public:
  explicit Device(int gpu);
  ~Device() override;

  DeviceKind kind() const override { return DeviceKind::cuda; }
  std::string description() const override;

  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void copy_from_host(void* device, const void* host, std::size_t bytes) override;
  void copy_to_host(void* host, const void* device, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void fill_zero(void* device, std::size_t bytes) override;
  void synchronize() override;
  void* allocate_host(std::size_t bytes) override;
  void release_host(void* memory) noexcept override;
  std::uint64_t mark() override;
  void wait_for(std::uint64_t mark) override;
#ifdef CFAA_EMULATED
  bool watches_memory() const override {
    return watches_memory_;
  }
  void spoil(void* device, std::size_t bytes) override;
#endif

  // Of the lane that work is queued on.
  cudaStream_t stream() const {
    return lanes_[lane_].stream;
  }

  // Two streams with a cuBLAS handle each, so that work of the second may run beside that of the
  // first. What orders them is the business of host/device/branch.h; all else knows lane 0 alone.
  void use_lane(std::size_t lane);
  std::size_t lane() const {
    return lane_;
  }
  const cudaDeviceProp& properties() const {
    return properties_;
  }

  // Dynamic shared memory that a kernel's block may ask for: what the device allows, less a KiB for
  // the static part.
  std::size_t shared_limit() const {
    return properties_.sharedMemPerBlockOptin - 1024;
  }

  // Whether double takes many times as long as float, as on graphics cards.
  bool has_slow_double() const {
    return slow_double_;
  }

  // Made on first use, bound to stream(). The workspace of cuBLAS is set, so that a call captured
  // in a graph allocates nothing.
  cublasHandle_t blas();
  cusolverDnHandle_t solver();

  // The workspace of an eigenproblem, asked of the library at the first problem of its kind: the
  // question itself may be refused while a graph is captured.
  using Eigenproblem = std::array<int64_t, 4>;  // order, batch, bytes of a scalar, mode
  WorkspaceBytes workspace_of(const Eigenproblem& problem,
                              const std::function<WorkspaceBytes()>& ask);

  // The graph being captured, or nullptr; set by cuda/graph.h.
  Graph* recorder() const {
    return recorder_;
  }
  void set_recorder(Graph* graph) {
    recorder_ = graph;
  }

 private:
  cudaDeviceProp properties_{};
  bool slow_double_ = false;
  struct Lane {
    cudaStream_t stream = nullptr;
    cublasHandle_t blas = nullptr;
    void* blas_workspace = nullptr;
  };
  std::array<Lane, 2> lanes_;
  std::size_t lane_ = 0;
  cusolverDnHandle_t solver_ = nullptr;
  std::map<Eigenproblem, WorkspaceBytes> workspaces_;
  Graph* recorder_ = nullptr;
#ifdef CFAA_EMULATED
  bool watches_memory_;
#endif
  std::array<cudaEvent_t, kMarks> events_{};  // mark i is event i % kMarks
  std::uint64_t marks_ = 0;
};

inline Device& device_of(Context& context) {
  return static_cast<Device&>(context.runtime());
}

}  // namespace cfaa::cuda
