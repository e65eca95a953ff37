#pragma once

// Makes the builder of an encoder's network (host/core/network.h) for the Context's device.

#include <memory>

#include "host/core/context.h"
#include "host/core/network.h"

namespace cfaa {

// Error, with what to do, in a build without the device's engine: OpenVINO for the CPU, TensorRT
// for the GPU.
std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                     const NetworkOptions& options);

// The implementations: host/cpu/openvino_network.cpp and cuda/tensorrt_network.cpp.
namespace cpu {
std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                     const NetworkOptions& options);
}
namespace cuda {
std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                     const NetworkOptions& options);
}

}  // namespace cfaa
