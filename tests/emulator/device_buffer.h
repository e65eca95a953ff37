#pragma once
// What the tests of the emulated device share: memory of a device that frees itself, and copies.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <vector>

#include "cuda/check.h"

namespace cfaa::cuda {

template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t size) : size_(size) {
    CFAA_CUDA_CHECK(cudaMalloc(&data_, size * sizeof(T)));
  }
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer(values.size()) {
    CFAA_CUDA_CHECK(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceBuffer() { CFAA_CUDA_WARN(cudaFree(data_)); }
  DeviceBuffer(const DeviceBuffer&) = delete;

  operator T*() const { return data_; }
  T* data() const { return data_; }

  // Waits for the device, then copies.
  std::vector<T> values() const {
    std::vector<T> host(size_);
    CFAA_CUDA_CHECK(cudaDeviceSynchronize());
    CFAA_CUDA_CHECK(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

}  // namespace cfaa::cuda
