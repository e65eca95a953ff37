#pragma once
// Bytes that TensorRT hands to its caller.

#include <utility>
#include <vector>

#include "NvInfer.h"

namespace emulator::tensorrt {

class HostBytes final : public nvinfer1::IHostMemory {
 public:
  explicit HostBytes(std::vector<unsigned char> bytes) : bytes_(std::move(bytes)) {}
  void* data() const noexcept override { return const_cast<unsigned char*>(bytes_.data()); }
  std::size_t size() const noexcept override { return bytes_.size(); }
  nvinfer1::DataType type() const noexcept override { return nvinfer1::DataType::kUINT8; }

 private:
  std::vector<unsigned char> bytes_;
};

}  // namespace emulator::tensorrt
