#pragma once

// Events and pinned host memory, owned.
//
//   Event copied;
//   copied.record(copies);        // when what was queued on `copies` so far is done ...
//   copied.hold(device.stream()); // ... goes on the device's stream, which waits without the host

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "cuda/check.h"

namespace cfaa::cuda {

// A stream beside the device's own, for copies that overlap with its work.
class Stream {
 public:
  Stream() { CFAA_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { CFAA_CUDA_WARN(cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  operator cudaStream_t() const { return stream_; }
  void synchronize() { CFAA_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { CFAA_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { CFAA_CUDA_WARN(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { CFAA_CUDA_CHECK(cudaEventRecord(event_, stream)); }

  // Later work of `stream` waits for the event; the host does not.
  void hold(cudaStream_t stream) { CFAA_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0)); }

  // The host waits.
  void synchronize() { CFAA_CUDA_CHECK(cudaEventSynchronize(event_)); }

  // Both events have happened.
  double milliseconds_since(const Event& start) const {
    float milliseconds = 0;
    CFAA_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start.event_, event_));
    return static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Host memory that the GPU copies from and to without a detour, and without making the host wait.
template <class T>
class Pinned {
 public:
  Pinned() = default;
  explicit Pinned(std::size_t count) : count_(count) {
    void* memory = nullptr;
    if (count > 0) CFAA_CUDA_CHECK(cudaMallocHost(&memory, count * sizeof(T)));
    data_ = static_cast<T*>(memory);
  }
  ~Pinned() {
    if (data_ != nullptr) CFAA_CUDA_WARN(cudaFreeHost(data_));
  }
  Pinned(Pinned&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Pinned& operator=(Pinned&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + count_; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace cfaa::cuda
