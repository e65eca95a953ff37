#pragma once

// A transformer encoder as a graph, written once (host/encoder/encoder.h) and built twice: by
// OpenVINO for the CPU (host/encoder/openvino_network.cpp) and by TensorRT for the GPU
// (cuda/tensorrt/network.cpp). A builder hands out nodes; build() turns the graph behind one node
// into an engine that runs batches of token ids.
//
//   auto builder = make_network_builder(context, options);
//   Node x = builder->embed(builder->token_ids(), words);
//   x = builder->layer_norm(x, gamma, beta, 1e-12);
//   auto engine = builder->build(builder->pool(x, Pooling::mean));
//
// Shapes: B sequences of S tokens each, padded on the right, H features. Matrix products are in the
// precision of the options; layer norms, pooling and the output are in float32 whatever it is.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/dtype.h"
#include "host/core/view.h"
#include "host/ops/dispatch.h"

namespace cfaa {

enum class NetworkPrecision { f32, tf32, f16, bf16 };  // tf32: on a GPU only

std::string name_of(NetworkPrecision precision);  // "f32"

struct NetworkOptions {
  NetworkPrecision precision = NetworkPrecision::f32;
  int64_t max_length = 512;     // S at most
  int64_t batch_tokens = 0;     // B x S at most; 0: what suits the device
  std::string cache_directory;  // for engines that take minutes to build; "": none is kept
  std::string content_hash;     // of weights and configuration: names the engine in the cache
};

// An array of the model's file, mapped.
struct Weights {
  std::string name;  // as in the file, for messages
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // keeps `bytes` mapped: builders and engines that read them
                                      // later hold a copy
};

enum class Nonlinearity { gelu, gelu_tanh, relu };
enum class Pooling { mean, cls, max };

// A value of the graph; belongs to the builder that returned it.
struct Node {
  int index = -1;
};

// Token ids of B sequences padded to one length.
struct TokenBatch {
  MatrixView<const int32_t> ids;      // (B, S), contiguous
  VectorView<const int32_t> lengths;  // (B) real tokens of each, 1 ... S
};

// Runs batches. Up to slots() of them may be under way at a time, so that preparing one hides
// behind computing another. One thread calls it.
class NetworkEngine {
 public:
  virtual ~NetworkEngine() = default;

  virtual int64_t width() const = 0;  // features of the output
  virtual int slots() const = 0;

  // The length S at which a sequence of `length` tokens runs: its own on the CPU, where batches of
  // equal length make a vector independent of its neighbours; its bucket on a GPU.
  virtual int64_t padded_length(int64_t length) const = 0;
  // Sequences of that padded length in a full batch, at least 1.
  virtual int64_t batch_rows(int64_t padded_length) const = 0;

  // Queues a batch; `batch` may be reused when it returns. The slot must be free.
  virtual void start(int slot, const TokenBatch& batch) = 0;
  // Waits for it: (B, width), valid until the slot is started again.
  virtual MatrixView<const float> finish(int slot) = 0;

  // For people: "OpenVINO 2026.4.1 on the CPU, f32, 2 streams".
  virtual std::string description() const = 0;
};

class NetworkBuilder {
 public:
  virtual ~NetworkBuilder() = default;

  virtual Node token_ids() = 0;  // (B, S)

  // Rows of a table (V, H) -> (B, S, H).
  virtual Node embed(Node ids, const Weights& table) = 0;
  // Rows first, first + 1, ... of a table (P, H), one for each place in the sequence -> (1, S, H).
  virtual Node embed_positions(const Weights& table, int64_t first) = 0;
  // One row of a table (V, H) -> (1, 1, H), which add() broadcasts.
  virtual Node row(const Weights& table, int64_t index) = 0;

  virtual Node add(Node a, Node b) = 0;
  // gamma, beta (H); over the last dimension.
  virtual Node layer_norm(Node x, const Weights& gamma, const Weights& beta, double epsilon) = 0;
  // x W' + b: weight (out, in) as PyTorch stores it, bias (out).
  virtual Node linear(Node x, const Weights& weight, const Weights& bias) = 0;
  virtual Node activate(Node x, Nonlinearity kind) = 0;
  // softmax(Q K' / sqrt(H / heads)) V for each head over the real tokens. (B, S, H) each.
  virtual Node attention(Node q, Node k, Node v, int64_t heads) = 0;

  // Over the real tokens: (B, S, H) -> (B, H), float32.
  virtual Node pool(Node x, Pooling kind) = 0;
  // Each row divided by its length; a zero row stays zero.
  virtual Node unit_length(Node x) = 0;

  // The engine of what leads to `output` (B, H). Called once, last.
  virtual std::unique_ptr<NetworkEngine> build(Node output) = 0;
};

// The builder for the Context's device. Error, with what to do, in a build without the device's
// engine: OpenVINO for the CPU, TensorRT for the GPU.
CFAA_OP(std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                             const NetworkOptions& options));

}  // namespace cfaa
