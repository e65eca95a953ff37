#if CFAA_HAS_TENSORRT

#include "cuda/tensorrt/layers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "host/core/dtype.h"

namespace cfaa::cuda {
namespace {

using nvinfer1::DataType;
using nvinfer1::Dims;

constexpr float kShortest = 1e-12f;  // a row shorter than this is a zero row (as PyTorch has it)

Dims shape_of(std::initializer_list<int64_t> extents) {
  Dims dims{};
  dims.nbDims = static_cast<int32_t>(extents.size());
  std::copy(extents.begin(), extents.end(), dims.d);
  return dims;
}

DataType type_of(NetworkPrecision precision) {
  switch (precision) {
    case NetworkPrecision::f16:
      return DataType::kHALF;
    case NetworkPrecision::bf16:
      return DataType::kBF16;
    case NetworkPrecision::f32:
    case NetworkPrecision::tf32:
      break;
  }
  return DataType::kFLOAT;
}

bool is_stored_as(DataType type, DType stored) {
  return (type == DataType::kFLOAT && stored == DType::f32) ||
         (type == DataType::kHALF && stored == DType::f16) ||
         (type == DataType::kBF16 && stored == DType::bf16);
}

std::size_t bytes_of(DataType type) {
  return type == DataType::kFLOAT || type == DataType::kINT32 ? 4 : 2;
}

// To nearest even; NaN stays one.
uint16_t to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void store(float value, DataType type, std::byte* to) {
  if (type == DataType::kFLOAT) {
    std::memcpy(to, &value, sizeof(value));
  } else {
    const uint16_t bits = type == DataType::kHALF ? float_to_half(value) : to_bfloat16(value);
    std::memcpy(to, &bits, sizeof(bits));
  }
}

// `count` elements of the file from `from` on, converted. A weight beyond half's range would turn
// every vector into NaN: that is said here, where it can be named.
std::vector<std::byte> converted(const Weights& weights, const std::byte* from, int64_t count,
                                 DataType type) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<std::byte> out(static_cast<std::size_t>(count) * bytes_of(type));
  std::vector<float> piece(static_cast<std::size_t>(std::min(count, kPiece)));
  const std::size_t stored = size_of(weights.dtype);
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t here = std::min(kPiece, count - begin);
    convert<float>(weights.dtype, from + static_cast<std::size_t>(begin) * stored, 1, here,
                   piece.data());
    for (int64_t i = 0; i < here; ++i) {
      const float value = piece[static_cast<std::size_t>(i)];
      if (type == DataType::kHALF && std::abs(value) > 65504.0f) {
        throw Error("the tensor " + weights.name + " holds " + std::to_string(value) +
                    ", which float16 cannot; use --precision bf16 or f32");
      }
      store(value, type, out.data() + static_cast<std::size_t>(begin + i) * bytes_of(type));
    }
  }
  return out;
}

}  // namespace

TensorRTLayers::TensorRTLayers(nvinfer1::INetworkDefinition& network, TensorRTLog& log,
                               NetworkPrecision precision, int64_t max_length, KeyPadding padding)
    : network_(network),
      log_(log),
      compute_(type_of(precision)),
      max_length_(max_length),
      padding_(padding) {}

// Dimensions of one name are equal at run time, which tells TensorRT where nothing is broadcast.
TensorRTLayers::Tensor& TensorRTLayers::input(const char* name,
                                              std::vector<const char*> dimensions) {
  Tensor*& known = inputs_[name];
  if (known == nullptr) {
    Dims shape{};
    shape.nbDims = static_cast<int32_t>(dimensions.size());
    std::fill_n(shape.d, dimensions.size(), -1);
    known = &required(network_.addInput(name, DataType::kINT32, shape), log_, "add an input");
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      known->setDimensionName(static_cast<int32_t>(i), dimensions[i]);
    }
  }
  return *known;
}

TensorRTLayers::Tensor& TensorRTLayers::ids() {
  return input(kIds, {"batch", "length"});
}
TensorRTLayers::Tensor& TensorRTLayers::lengths() {
  return input(kLengths, {"batch"});
}
TensorRTLayers::Tensor& TensorRTLayers::positions() {
  return input(kPositions, {"length"});
}

TensorRTLayers::Tensor& TensorRTLayers::constant(const Weights& weights, int64_t first_row,
                                                 int64_t rows, const Dims& shape, Type type) {
  const int64_t width = weights.shape.back();
  const int64_t count = rows * width;
  const std::size_t stored = size_of(weights.dtype);
  const std::byte* from =
      weights.bytes.data() + static_cast<std::size_t>(first_row * width) * stored;
  const void* values = from;
  const bool aligned = reinterpret_cast<std::uintptr_t>(from) % stored == 0;
  if (!is_stored_as(type, weights.dtype) || !aligned) {
    values = kept_.emplace_back(converted(weights, from, count, type)).data();
  }
  nvinfer1::IConstantLayer& layer =
      required(network_.addConstant(shape, {type, values, count}), log_, "add a constant");
  layer.setName(weights.name.c_str());
  return *layer.getOutput(0);
}

TensorRTLayers::Tensor& TensorRTLayers::constant(const Weights& weights, const Dims& shape,
                                                 Type type) {
  const int64_t rows = weights.shape.size() > 1 ? weights.shape.front() : 1;
  return constant(weights, 0, rows, shape, type);
}

TensorRTLayers::Tensor& TensorRTLayers::scalar(int rank, float value, Type type) {
  std::vector<std::byte>& bytes = kept_.emplace_back(bytes_of(type));
  if (type == Type::kINT32) {
    const int32_t whole = static_cast<int32_t>(value);
    std::memcpy(bytes.data(), &whole, sizeof(whole));
  } else {
    store(value, type, bytes.data());
  }
  Dims shape{};
  shape.nbDims = rank;
  std::fill_n(shape.d, rank, 1);
  return *required(network_.addConstant(shape, {type, bytes.data(), 1}), log_, "add a constant")
              .getOutput(0);
}

TensorRTLayers::Tensor& TensorRTLayers::cast(Tensor& x, Type type) {
  if (x.getType() == type) return x;
  Tensor*& known = casts_[{&x, type}];
  if (known == nullptr) {
    known = required(network_.addCast(x, type), log_, "add a cast").getOutput(0);
  }
  return *known;
}

TensorRTLayers::Tensor& TensorRTLayers::elementwise(Tensor& a, Tensor& b, Operation operation) {
  return *required(network_.addElementWise(a, b, operation), log_, "add an elementwise layer")
              .getOutput(0);
}

TensorRTLayers::Tensor& TensorRTLayers::reshape(Tensor& x, const Dims& shape) {
  nvinfer1::IShuffleLayer& layer = required(network_.addShuffle(x), log_, "add a reshape");
  layer.setReshapeDimensions(shape);
  return *layer.getOutput(0);
}

TensorRTLayers::Tensor& TensorRTLayers::reduce(Tensor& x, int axis,
                                               nvinfer1::ReduceOperation operation, bool keep) {
  return *required(network_.addReduce(x, operation, 1u << axis, keep), log_, "add a reduction")
              .getOutput(0);
}

TensorRTLayers::Tensor& TensorRTLayers::embed(Tensor& ids, const Weights& table) {
  Tensor& rows = constant(table, shape_of({table.shape[0], table.shape[1]}), compute_);
  return *required(network_.addGather(rows, ids, 0), log_, "add an embedding").getOutput(0);
}

TensorRTLayers::Tensor& TensorRTLayers::embed_positions(const Weights& table, int64_t first) {
  const int64_t width = table.shape[1];
  Tensor& rows = constant(table, first, max_length_, shape_of({max_length_, width}), compute_);
  Tensor& found =
      *required(network_.addGather(rows, positions(), 0), log_, "add an embedding").getOutput(0);
  return reshape(found, shape_of({1, -1, width}));
}

TensorRTLayers::Tensor& TensorRTLayers::row(const Weights& table, int64_t index) {
  return constant(table, index, 1, shape_of({1, 1, table.shape[1]}), compute_);
}

TensorRTLayers::Tensor& TensorRTLayers::add(Tensor& a, Tensor& b) {
  return elementwise(cast(a, Type::kFLOAT), cast(b, Type::kFLOAT), Operation::kSUM);
}

TensorRTLayers::Tensor& TensorRTLayers::layer_norm(Tensor& x, const Weights& gamma,
                                                   const Weights& beta, double epsilon) {
  const Dims shape = shape_of({1, 1, gamma.shape[0]});
  nvinfer1::INormalizationLayer& layer = required(
      network_.addNormalizationV2(cast(x, Type::kFLOAT), constant(gamma, shape, Type::kFLOAT),
                                  constant(beta, shape, Type::kFLOAT), 1u << 2),
      log_, "add a layer norm");
  layer.setEpsilon(static_cast<float>(epsilon));
  return cast(*layer.getOutput(0), compute_);
}

// Rank 3, or 2 after pooling.
TensorRTLayers::Tensor& TensorRTLayers::linear(Tensor& x, const Weights& weight,
                                               const Weights& bias) {
  using nvinfer1::MatrixOperation;
  const int64_t out = weight.shape[0], in = weight.shape[1];
  const bool pooled = x.getDimensions().nbDims == 2;
  Tensor& w = constant(weight, pooled ? shape_of({out, in}) : shape_of({1, out, in}), compute_);
  Tensor& b = constant(bias, pooled ? shape_of({1, out}) : shape_of({1, 1, out}), compute_);
  Tensor& product = *required(network_.addMatrixMultiply(cast(x, compute_), MatrixOperation::kNONE,
                                                         w, MatrixOperation::kTRANSPOSE),
                              log_, "add a matrix product")
                         .getOutput(0);
  return elementwise(product, b, Operation::kSUM);
}

TensorRTLayers::Tensor& TensorRTLayers::activate(Tensor& x, Nonlinearity kind) {
  using nvinfer1::ActivationType;
  const ActivationType type = kind == Nonlinearity::gelu        ? ActivationType::kGELU_ERF
                              : kind == Nonlinearity::gelu_tanh ? ActivationType::kGELU_TANH
                                                                : ActivationType::kRELU;
  return *required(network_.addActivation(cast(x, compute_), type), log_, "add an activation")
              .getOutput(0);
}

TensorRTLayers::Tensor& TensorRTLayers::token_mask() {
  if (token_mask_ == nullptr) {
    token_mask_ = &elementwise(reshape(positions(), shape_of({1, -1})),
                               reshape(lengths(), shape_of({-1, 1})), Operation::kLESS);
  }
  return *token_mask_;
}

// Batch and heads of a mask may be ones that are broadcast, queries and keys may not. So the keys'
// mask (B, 1, 1, S) is spread over the queries by a column (1, 1, S, 1) of true. Padded queries
// attend to the real keys too: their values stay finite, and nobody reads them.
TensorRTLayers::Tensor& TensorRTLayers::attention_mask() {
  if (attention_mask_ == nullptr) {
    Tensor& keys = reshape(token_mask(), shape_of({0, 1, 1, -1}));
    Tensor& queries = elementwise(reshape(positions(), shape_of({1, 1, -1, 1})),
                                  scalar(4, -1, Type::kINT32), Operation::kGREATER);
    attention_mask_ = &elementwise(keys, queries, Operation::kAND);
  }
  return *attention_mask_;
}

TensorRTLayers::Tensor& TensorRTLayers::by_head(Tensor& x, int64_t heads) {
  const int64_t width = x.getDimensions().d[2];
  nvinfer1::IShuffleLayer& layer = required(network_.addShuffle(x), log_, "split heads");
  layer.setReshapeDimensions(shape_of({0, 0, heads, width / heads}));
  layer.setSecondTranspose({0, 2, 1, 3});
  return *layer.getOutput(0);
}

// TensorRT's attention does not scale: Q is multiplied by 1 / sqrt(d) first. Decomposable: a shape
// without a fused kernel is run by several instead of failing to build.
TensorRTLayers::Tensor& TensorRTLayers::attention(Tensor& q, Tensor& k, Tensor& v, int64_t heads) {
  const int64_t width = q.getDimensions().d[2];
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width / heads)));
  Tensor& scaled = elementwise(cast(q, compute_), scalar(3, scale, compute_), Operation::kPROD);
  Tensor& query = by_head(scaled, heads);
  Tensor& key = by_head(cast(k, compute_), heads);
  Tensor& value = by_head(cast(v, compute_), heads);
  constexpr auto softmax = nvinfer1::AttentionNormalizationOp::kSOFTMAX;
#if NV_TENSORRT_MAJOR >= 11
  nvinfer1::IAttention* made =
      network_.addAttentionV2(query, key, value, softmax, nvinfer1::CausalMaskKind::kNONE);
#else
  nvinfer1::IAttention* made = network_.addAttention(query, key, value, softmax, false);
#endif
  nvinfer1::IAttention& attention = required(made, log_, "add attention");
  if (padding_ == KeyPadding::mask) {
    require(attention.setMask(attention_mask()), log_, "mask attention");
  }
#if NV_TENSORRT_MAJOR >= 11
  if (padding_ == KeyPadding::lengths) {
    require(attention.setKeyValueLengths(&lengths()), log_, "tell attention the lengths");
  }
#endif
  require(attention.setDecomposable(true), log_, "make attention decomposable");

  // (B, heads, S, d) -> (B, S, heads, d) -> (B, S, H)
  nvinfer1::IShuffleLayer& layer =
      required(network_.addShuffle(*attention.getOutput(0)), log_, "join heads");
  layer.setFirstTranspose({0, 2, 1, 3});
  layer.setReshapeDimensions(shape_of({0, -1, width}));
  return *layer.getOutput(0);
}

// What is masked is replaced, not multiplied by zero: padding may hold anything, infinity too.
TensorRTLayers::Tensor& TensorRTLayers::pool(Tensor& x, Pooling kind) {
  if (kind == Pooling::cls) {
    return cast(*required(network_.addGather(x, scalar(0, 0, Type::kINT32), 1), log_,
                          "take the first token")
                     .getOutput(0),
                Type::kFLOAT);
  }
  const bool mean = kind == Pooling::mean;
  const float neutral = mean ? 0.0f : std::numeric_limits<float>::lowest();
  Tensor& real =
      *required(network_.addSelect(reshape(token_mask(), shape_of({0, 0, 1})),
                                   cast(x, Type::kFLOAT), scalar(3, neutral, Type::kFLOAT)),
                log_, "mask padding")
           .getOutput(0);
  if (!mean) return reduce(real, 1, nvinfer1::ReduceOperation::kMAX, false);
  Tensor& total = reduce(real, 1, nvinfer1::ReduceOperation::kSUM, false);
  return elementwise(total, cast(reshape(lengths(), shape_of({-1, 1})), Type::kFLOAT),
                     Operation::kDIV);
}

TensorRTLayers::Tensor& TensorRTLayers::unit_length(Tensor& x) {
  Tensor& rows = cast(x, Type::kFLOAT);
  Tensor& squares =
      reduce(elementwise(rows, rows, Operation::kPROD), 1, nvinfer1::ReduceOperation::kSUM, true);
  Tensor& norms =
      *required(network_.addUnary(squares, nvinfer1::UnaryOperation::kSQRT), log_, "take a root")
           .getOutput(0);
  return elementwise(rows, elementwise(norms, scalar(2, kShortest, Type::kFLOAT), Operation::kMAX),
                     Operation::kDIV);
}

void TensorRTLayers::mark_output(Tensor& x) {
  Tensor& vectors = cast(x, Type::kFLOAT);
  vectors.setName(kVectors);
  network_.markOutput(vectors);
}

}  // namespace cfaa::cuda

#endif
