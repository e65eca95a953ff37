// Allocation, copies and fills of the CUDA runtime.

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cuda_runtime_api.h"
#include "fail.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"

using namespace emulator;

namespace {

// A copy of `height` rows of `width` bytes each; a flat copy is one row.
struct Copy {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch;
  std::size_t width;
  std::size_t height;

  std::size_t to_bytes() const { return height == 0 ? 0 : (height - 1) * to_pitch + width; }
  std::size_t from_bytes() const { return height == 0 ? 0 : (height - 1) * from_pitch + width; }

  void run(const unsigned char* source) const {
    for (std::size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<unsigned char*>(to) + row * to_pitch, source + row * from_pitch,
                   width);
    }
  }
};

// The direction that the pointers show; an error when `kind` says otherwise.
cudaError_t direction(const char* name, const Copy& copy, enum cudaMemcpyKind& kind) {
  const bool to_device = device_of(copy.to) >= 0, from_device = device_of(copy.from) >= 0;
  const enum cudaMemcpyKind shown =
      to_device ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                : (from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
  if (kind == cudaMemcpyDefault) kind = shown;
  if (kind != shown) {
    explain(
        "%s: the destination is %s memory and the source %s memory, but the kind says otherwise",
        name, to_device ? "device" : "host", from_device ? "device" : "host");
    return cudaErrorInvalidValue;
  }
  const struct {
    const void* p;
    std::size_t bytes;
    bool device;
    const char* what;
  } sides[] = {{copy.to, copy.to_bytes(), to_device, "destination"},
               {copy.from, copy.from_bytes(), from_device, "source"}};
  for (const auto& side : sides) {
    if (!side.device) continue;
    const std::string why = why_not_device_memory(side.p, side.bytes, device_of(side.p), false);
    if (!why.empty()) {
      explain("%s: the %s %s", name, side.what, why.c_str());
      return cudaErrorInvalidValue;
    }
  }
  return cudaSuccess;
}

Operation copy_operation(const char* name, const Copy& copy, enum cudaMemcpyKind kind) {
  Operation operation;
  operation.name = name;
  if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) {
    operation.pointers.push_back({copy.to, copy.to_bytes(), "the destination", false, true, true});
  }
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) {
    operation.pointers.push_back({copy.from, copy.from_bytes(), "the source"});
  }
  operation.run = [copy] { copy.run(static_cast<const unsigned char*>(copy.from)); };
  return operation;
}

// A GPU that reaches pageable memory by itself may read the source as late as a stream runs the
// copy; one that does not has staged it long before. So the source must not change until the host
// has waited. Read by the kernel's leave: the memory may be gone.
void check_unchanged(const std::string& name, const Copy& copy,
                     const std::vector<unsigned char>& staged) {
  std::vector<unsigned char> row(copy.width);
  for (std::size_t r = 0; r < copy.height; ++r) {
    auto* source = static_cast<const unsigned char*>(copy.from) + r * copy.from_pitch;
    const iovec to{row.data(), row.size()};
    const iovec from{const_cast<unsigned char*>(source), row.size()};
    const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    if (got < 0 && errno != EFAULT) return;  // not allowed here: nothing can be said
    if (got == static_cast<ssize_t>(row.size()) &&
        std::memcmp(row.data(), staged.data() + r * copy.width, copy.width) == 0) {
      continue;
    }
    fail(
        "%s: its pageable source was %s before the copy was waited for; wait, or use pinned "
        "memory that lives long enough",
        name.c_str(), got < 0 ? "freed" : "changed or freed");
  }
}

cudaError_t copy_now(const char* name, const Copy& copy, enum cudaMemcpyKind kind) {
  Locked locked(runtime_lock());
  if (copy.width == 0 || copy.height == 0) return cudaSuccess;
  if (cudaError_t error = direction(name, copy, kind)) return remember(error);
  ++settings().counters.copies;
  const int to = device_of(copy.to), from = device_of(copy.from);
  const int device = to >= 0 ? to : from >= 0 ? from : current_device();
  if (cudaError_t error = drain_blocking_streams(device)) return remember(error);
  if (to >= 0 && from >= 0 && to != from) {  // through the host, as peers without a link do
    if (cudaError_t error = drain_blocking_streams(from)) return remember(error);
    std::vector<unsigned char> staged(copy.from_bytes());
    Copy out = copy, in = copy;
    out.to = staged.data();
    out.to_pitch = copy.from_pitch;
    in.from = staged.data();
    Operation read = copy_operation(name, out, cudaMemcpyDeviceToHost);
    read.device = from;
    run_now(read);
    Operation write = copy_operation(name, in, cudaMemcpyHostToDevice);
    write.device = to;
    run_now(write);
    return cudaSuccess;
  }
  Operation operation = copy_operation(name, copy, kind);
  operation.device = device;
  run_now(operation);
  return cudaSuccess;
}

cudaError_t copy_later(const char* name, const Copy& copy, enum cudaMemcpyKind kind,
                       cudaStream_t stream) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (copy.width == 0 || copy.height == 0) return cudaSuccess;
  if (cudaError_t error = direction(name, copy, kind)) return remember(error);
  ++settings().counters.copies;
  const bool pinned = (kind == cudaMemcpyHostToDevice && is_pinned(copy.from, copy.from_bytes())) ||
                      (kind == cudaMemcpyDeviceToHost && is_pinned(copy.to, copy.to_bytes())) ||
                      kind == cudaMemcpyDeviceToDevice;
  if (pinned) {
    Operation operation = copy_operation(name, copy, kind);
    if (kind == cudaMemcpyHostToDevice) operation.pinned = {copy.from, copy.from_bytes()};
    if (kind == cudaMemcpyDeviceToHost) operation.pinned = {copy.to, copy.to_bytes()};
    return enqueue(target, std::move(operation));
  }

  // Pageable memory: CUDA stages what goes to the device at once, and waits for what comes back.
  if (is_capturing(target)) {
    invalidate_capture(target);
    explain("%s of pageable host memory is not captured: use pinned memory", name);
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  Operation operation = copy_operation(name, copy, kind);
  if (kind == cudaMemcpyHostToDevice) {
    const auto* from = static_cast<const unsigned char*>(copy.from);
    auto staged = std::make_shared<std::vector<unsigned char>>(copy.height * copy.width);
    Copy packed = copy;
    packed.from_pitch = copy.width;
    for (std::size_t row = 0; row < copy.height; ++row) {
      std::memcpy(staged->data() + row * copy.width, from + row * copy.from_pitch, copy.width);
    }
    operation.run = [name = std::string(name), copy, packed, staged] {
      check_unchanged(name, copy, *staged);
      packed.run(staged->data());
    };
    return enqueue(target, std::move(operation));
  }
  if (cudaError_t error = enqueue(target, std::move(operation))) return error;
  drain(target);
  return cudaSuccess;
}

cudaError_t fill(const char* name, void* p, int value, std::size_t count, cudaStream_t stream,
                 bool wait) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(stream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (count == 0) return cudaSuccess;
  const std::string why = why_not_device_memory(p, count, device_of_stream(target), false);
  if (!why.empty()) {
    explain("%s: the destination %s", name, why.c_str());
    return remember(cudaErrorInvalidValue);
  }
  ++settings().counters.copies;
  Operation operation;
  operation.name = name;
  operation.pointers.push_back({p, count, "the destination", false, true, true});
  operation.run = [=] { std::memset(p, value, count); };
  if (cudaError_t error = enqueue(target, std::move(operation))) return error;
  if (wait) return remember(drain_blocking_streams(device_of_stream(target)));
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** devPtr, std::size_t size) {
  Locked locked(runtime_lock());
  *devPtr = nullptr;
  if (cudaError_t error = unsafe_call("cudaMalloc")) return error;
  ++settings().counters.allocations;
  if (size == 0) return cudaSuccess;
  *devPtr = allocate_device(current_device(), size);
  return remember(*devPtr == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFree(void* devPtr) {
  Locked locked(runtime_lock());
  if (devPtr == nullptr) return cudaSuccess;
  if (cudaError_t error = unsafe_call("cudaFree")) return error;
  const int device = device_of(devPtr);
  if (device >= 0) drain_device(device);
  if (device < 0 || !free_device(devPtr)) {
    const Allocation* a = device < 0 ? nullptr : find_allocation(devPtr);
    explain("cudaFree: %p %s", devPtr,
            device < 0                ? "is host memory"
            : a == nullptr || a->live ? "is not the start of a buffer"
                                      : "was freed before");
    return remember(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** devPtr, std::size_t size, cudaStream_t hStream) {
  Locked locked(runtime_lock());
  *devPtr = nullptr;
  cudaStream_t target = resolve(hStream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (is_capturing(target)) {
    invalidate_capture(target);
    explain("the emulated device does not capture cudaMallocAsync");
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  ++settings().counters.allocations;
  if (size == 0) return cudaSuccess;
  *devPtr = allocate_device(device_of_stream(target), size);
  return remember(*devPtr == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFreeAsync(void* devPtr, cudaStream_t hStream) {
  Locked locked(runtime_lock());
  cudaStream_t target = resolve(hStream);
  if (target == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (devPtr == nullptr) return cudaSuccess;
  const Allocation* a = device_of(devPtr) < 0 ? nullptr : find_allocation(devPtr);
  if (a == nullptr || !a->live || reinterpret_cast<void*>(a->base) != devPtr) {
    explain("cudaFreeAsync: %p is not the start of a live buffer", devPtr);
    return remember(cudaErrorInvalidValue);
  }
  Operation operation;
  operation.name = "cudaFreeAsync";
  operation.run = [devPtr] {
    if (!free_device(devPtr)) fail("cudaFreeAsync: the buffer was freed before");
  };
  return enqueue(target, std::move(operation));
}

cudaError_t cudaMallocHost(void** ptr, std::size_t size) {
  return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void** pHost, std::size_t size, unsigned int) {
  Locked locked(runtime_lock());
  *pHost = nullptr;
  if (cudaError_t error = unsafe_call("cudaHostAlloc")) return error;
  ++settings().counters.allocations;
  if (size == 0) return cudaSuccess;
  *pHost = allocate_pinned(size);
  return remember(*pHost == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFreeHost(void* ptr) {
  Locked locked(runtime_lock());
  if (ptr == nullptr) return cudaSuccess;
  if (cudaError_t error = unsafe_call("cudaFreeHost")) return error;
  for (int device = 0; device < device_count; ++device) drain_device(device);
  if (!free_pinned(ptr)) {
    explain("cudaFreeHost: %p is not pinned memory", ptr);
    return remember(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  Locked locked(runtime_lock());
  *total = settings().memory_limit;
  *free = *total - std::min(*total, live_device_bytes());
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* ptr) {
  Locked locked(runtime_lock());
  *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, const_cast<void*>(ptr)};
  const int device = device_of(ptr);
  if (device >= 0) {
    const Allocation* a = find_allocation(ptr);
    if (a == nullptr || !a->live) return remember(cudaErrorInvalidValue);
    *attributes = {cudaMemoryTypeDevice, device, const_cast<void*>(ptr), nullptr};
  } else if (is_pinned(ptr)) {
    *attributes = {cudaMemoryTypeHost, current_device(), const_cast<void*>(ptr),
                   const_cast<void*>(ptr)};
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* dst, const void* src, std::size_t count, enum cudaMemcpyKind kind) {
  return copy_now("cudaMemcpy", {dst, count, src, count, count, 1}, kind);
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy_later("cudaMemcpyAsync", {dst, count, src, count, count, 1}, kind, stream);
}

cudaError_t cudaMemcpy2D(void* dst, std::size_t dpitch, const void* src, std::size_t spitch,
                         std::size_t width, std::size_t height, enum cudaMemcpyKind kind) {
  if (dpitch < width || spitch < width) return remember(cudaErrorInvalidPitchValue);
  return copy_now("cudaMemcpy2D", {dst, dpitch, src, spitch, width, height}, kind);
}

cudaError_t cudaMemcpy2DAsync(void* dst, std::size_t dpitch, const void* src, std::size_t spitch,
                              std::size_t width, std::size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream) {
  if (dpitch < width || spitch < width) return remember(cudaErrorInvalidPitchValue);
  return copy_later("cudaMemcpy2DAsync", {dst, dpitch, src, spitch, width, height}, kind, stream);
}

cudaError_t cudaMemset(void* devPtr, int value, std::size_t count) {
  return fill("cudaMemset", devPtr, value, count, nullptr, true);
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, std::size_t count, cudaStream_t stream) {
  return fill("cudaMemsetAsync", devPtr, value, count, stream, false);
}

}  // extern "C"
