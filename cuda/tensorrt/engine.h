#pragma once

// Runs batches through a TensorRT engine. Each of two slots has a stream, pinned and device
// buffers and memory for activations of its own, so that while one computes the other is filled and
// copied. Every bucket of a slot has an execution context, since a CUDA graph belongs to the shapes
// it was captured with; the contexts of a slot share its memory.
//
// A batch runs with all the rows of its bucket, the unused ones holding one token each: the shapes
// of a bucket never change, so the kernels are the same and a vector does not depend on how many
// rows are in its batch or on what they hold. The first batch of a bucket runs plainly (TensorRT
// sets itself up), the second is captured with its copies, and from then on a batch is one graph
// launch. Where the capture is refused, batches go on running plainly, and the log says so once.

#if CFAA_HAS_TENSORRT

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/tensorrt/cache.h"
#include "cuda/tensorrt/library.h"
#include "host/core/context.h"
#include "host/encoder/network.h"

namespace cfaa::cuda {

// Powers of two from 16 on, and the largest length itself.
std::vector<LengthBucket> length_buckets(int64_t max_length, int64_t batch_tokens);

// "NVIDIA A100-SXM4-80GB sm_80"
std::string gpu_of(Context& context);

// The engine in `bytes`, which are not needed afterwards. nullptr, with the reason in the log's
// error, where TensorRT does not accept them. The profiles of the engine are the buckets, in order.
std::unique_ptr<NetworkEngine> load_tensorrt_engine(Context& context,
                                                    std::shared_ptr<TensorRTLog> log,
                                                    std::span<const std::byte> bytes,
                                                    const EngineIdentity& identity);

}  // namespace cfaa::cuda

#endif
