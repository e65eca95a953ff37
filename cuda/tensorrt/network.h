#pragma once

// The GPU's builder of an encoder's network (host/encoder/network.h), on TensorRT.
//
// What is asked of the builder is written down first. build() then looks whether an engine of just
// that graph, these weights, this GPU, version of TensorRT and precision is in the cache directory,
// and only if not makes TensorRT's network of it (cuda/tensorrt/layers.h), with a profile for each
// length bucket, and builds: minutes for a large model.

#include <memory>

#include "host/core/context.h"
#include "host/encoder/network.h"

namespace cfaa::cuda {

// Error, with what to do, in a build without TensorRT.
std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                     const NetworkOptions& options);

}  // namespace cfaa::cuda
