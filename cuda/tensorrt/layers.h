#pragma once

// The encoder's operations in TensorRT's layers. The network is strongly typed: a tensor has the
// type its inputs give it, and every change of type is a cast that stands in the graph. Matrix
// products, attention and activations are in the compute type (float, half or bfloat16); sums,
// layer norms and pooling in float, which TensorRT fuses so that memory holds the smaller type.
//
// Inputs, made when first needed:
//   ids        (B, S) int32
//   lengths    (B) int32      real tokens of each sequence
//   positions  (S) int32      0, 1, ..., S - 1: which spares the graph shape arithmetic
// Output:
//   vectors    (B, H) float

#if CFAA_HAS_TENSORRT

#include <array>
#include <deque>
#include <map>
#include <vector>

#include "cuda/tensorrt/library.h"
#include "host/encoder/network.h"

namespace cfaa::cuda {

// Names of the engine's inputs and its output.
inline constexpr const char* kIds = "ids";
inline constexpr const char* kLengths = "lengths";
inline constexpr const char* kPositions = "positions";
inline constexpr const char* kVectors = "vectors";

// How attention is told which keys are padding: by each text's length, or by a mask (B, 1, S, S).
// TensorRT 10 knows the mask alone.
enum class KeyPadding { lengths, mask };
inline constexpr KeyPadding kKeyPadding =
    NV_TENSORRT_MAJOR >= 11 ? KeyPadding::lengths : KeyPadding::mask;

class TensorRTLayers {
 public:
  using Tensor = nvinfer1::ITensor;
  using Type = nvinfer1::DataType;

  // Weights converted to the compute type live here, so this object must outlive the build.
  TensorRTLayers(nvinfer1::INetworkDefinition& network, TensorRTLog& log,
                 NetworkPrecision precision, int64_t max_length, KeyPadding padding);

  Tensor& ids();

  Tensor& embed(Tensor& ids, const Weights& table);
  Tensor& embed_positions(const Weights& table, int64_t first);
  Tensor& row(const Weights& table, int64_t index);
  Tensor& add(Tensor& a, Tensor& b);
  Tensor& layer_norm(Tensor& x, const Weights& gamma, const Weights& beta, double epsilon);
  Tensor& linear(Tensor& x, const Weights& weight, const Weights& bias);
  Tensor& activate(Tensor& x, Nonlinearity kind);
  Tensor& attention(Tensor& q, Tensor& k, Tensor& v, int64_t heads);
  Tensor& pool(Tensor& x, Pooling kind);
  Tensor& unit_length(Tensor& x);

  void mark_output(Tensor& x);

 private:
  using Operation = nvinfer1::ElementWiseOperation;

  Tensor& lengths();
  Tensor& positions();
  Tensor& input(const char* name, std::vector<const char*> dimensions);

  Tensor& token_mask();      // (B, S) bool: real tokens
  Tensor& attention_mask();  // (B, 1, S, S) bool: the keys that a query may attend to

  // `rows` rows of the file's matrix from `first_row` on, as a constant of the given shape and
  // type.
  Tensor& constant(const Weights& weights, int64_t first_row, int64_t rows,
                   const nvinfer1::Dims& shape, Type type);
  Tensor& constant(const Weights& weights, const nvinfer1::Dims& shape, Type type);
  // One number, of a shape of ones.
  Tensor& scalar(int rank, float value, Type type);

  Tensor& cast(Tensor& x, Type type);
  Tensor& elementwise(Tensor& a, Tensor& b, Operation operation);
  Tensor& reshape(Tensor& x, const nvinfer1::Dims& shape);
  Tensor& by_head(Tensor& x, int64_t heads);  // (B, S, H) -> (B, heads, S, H / heads)
  Tensor& reduce(Tensor& x, int axis, nvinfer1::ReduceOperation operation, bool keep);

  nvinfer1::INetworkDefinition& network_;
  TensorRTLog& log_;
  Type compute_;
  int64_t max_length_;
  KeyPadding padding_;
  std::map<std::string, Tensor*> inputs_;
  std::map<std::pair<Tensor*, Type>, Tensor*> casts_;
  Tensor* token_mask_ = nullptr;
  Tensor* attention_mask_ = nullptr;
  std::deque<std::vector<std::byte>> kept_;
};

}  // namespace cfaa::cuda

#endif
