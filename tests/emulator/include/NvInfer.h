#pragma once
// The part of TensorRT 11 that the project calls, with TensorRT's names, values and signatures.
// Implemented by tests/emulator/src/tensorrt_*; see tests/emulator/README.md. Where the real
// classes forward to an implementation, these are the interface of one: a call reads the same.

#include <cstddef>
#include <cstdint>

#include "cuda_runtime_api.h"

#define NV_TENSORRT_MAJOR 11
#define NV_TENSORRT_MINOR 1
#define NV_TENSORRT_PATCH 0
#define NV_TENSORRT_BUILD 0
#define NV_TENSORRT_VERSION \
  (NV_TENSORRT_MAJOR * 10000L + NV_TENSORRT_MINOR * 100L + NV_TENSORRT_PATCH)

extern "C" std::int32_t getInferLibVersion() noexcept;

namespace nvinfer1 {

enum class DataType : std::int32_t {
  kFLOAT = 0,
  kHALF = 1,
  kINT8 = 2,
  kINT32 = 3,
  kBOOL = 4,
  kUINT8 = 5,
  kFP8 = 6,
  kBF16 = 7,
  kINT64 = 8,
  kINT4 = 9
};

enum class ActivationType : std::int32_t {
  kRELU = 0,
  kSIGMOID = 1,
  kTANH = 2,
  kGELU_ERF = 12,
  kGELU_TANH = 13
};

enum class ElementWiseOperation : std::int32_t {
  kSUM = 0,
  kPROD = 1,
  kMAX = 2,
  kMIN = 3,
  kSUB = 4,
  kDIV = 5,
  kAND = 8,
  kOR = 9,
  kEQUAL = 11,
  kGREATER = 12,
  kLESS = 13
};

enum class UnaryOperation : std::int32_t {
  kEXP = 0,
  kSQRT = 2,
  kRECIP = 3,
  kABS = 4,
  kNEG = 5,
  kERF = 19,
  kNOT = 20
};

enum class ReduceOperation : std::int32_t { kSUM = 0, kPROD = 1, kMAX = 2, kMIN = 3, kAVG = 4 };

enum class MatrixOperation : std::int32_t { kNONE = 0, kTRANSPOSE = 1, kVECTOR = 2 };

enum class AttentionNormalizationOp : std::int32_t { kNONE = 0, kSOFTMAX = 1 };

enum class CausalMaskKind : std::int32_t { kNONE = 0, kUPPER_LEFT = 1, kLOWER_RIGHT = 2 };

enum class OptProfileSelector : std::int32_t { kMIN = 0, kOPT = 1, kMAX = 2 };

enum class BuilderFlag : std::int32_t { kTF32 = 6 };

enum class MemoryPoolType : std::int32_t { kWORKSPACE = 0 };

enum class TensorIOMode : std::int32_t { kNONE = 0, kINPUT = 1, kOUTPUT = 2 };

enum class ExecutionContextAllocationStrategy : std::int32_t {
  kSTATIC = 0,
  kON_PROFILE_CHANGE = 1,
  kUSER_MANAGED = 2
};

class Dims64 {
 public:
  static constexpr std::int32_t MAX_DIMS{8};
  std::int32_t nbDims;
  std::int64_t d[MAX_DIMS];
};
using Dims = Dims64;

struct Permutation {
  std::int32_t order[Dims::MAX_DIMS];
};

// Held by reference until the engine is built.
class Weights {
 public:
  DataType type;
  void const* values;
  std::int64_t count;
};

using NetworkDefinitionCreationFlags = std::uint32_t;

class INoCopy {
 protected:
  INoCopy() = default;
  virtual ~INoCopy() = default;
  INoCopy(INoCopy const&) = delete;
  INoCopy& operator=(INoCopy const&) = delete;
};

class ILogger {
 public:
  enum class Severity : std::int32_t {
    kINTERNAL_ERROR = 0,
    kERROR = 1,
    kWARNING = 2,
    kINFO = 3,
    kVERBOSE = 4
  };
  virtual void log(Severity severity, char const* msg) noexcept = 0;
  virtual ~ILogger() = default;
};

class IHostMemory : public INoCopy {
 public:
  virtual ~IHostMemory() noexcept = default;
  virtual void* data() const noexcept = 0;
  virtual std::size_t size() const noexcept = 0;
  virtual DataType type() const noexcept = 0;
};

class ITensor : public INoCopy {
 public:
  virtual void setName(char const* name) noexcept = 0;
  virtual char const* getName() const noexcept = 0;
  virtual Dims getDimensions() const noexcept = 0;
  virtual DataType getType() const noexcept = 0;
  virtual bool isNetworkInput() const noexcept = 0;
  virtual bool isNetworkOutput() const noexcept = 0;
  virtual void setDimensionName(std::int32_t index, char const* name) noexcept = 0;

 protected:
  virtual ~ITensor() noexcept = default;
};

class ILayer : public INoCopy {
 public:
  virtual void setName(char const* name) noexcept = 0;
  virtual char const* getName() const noexcept = 0;
  virtual std::int32_t getNbInputs() const noexcept = 0;
  virtual std::int32_t getNbOutputs() const noexcept = 0;
  virtual ITensor* getOutput(std::int32_t index) const noexcept = 0;

 protected:
  virtual ~ILayer() noexcept = default;
};

class IActivationLayer : public ILayer {};
class IElementWiseLayer : public ILayer {};
class IGatherLayer : public ILayer {};
class IUnaryLayer : public ILayer {};
class IReduceLayer : public ILayer {};
class IMatrixMultiplyLayer : public ILayer {};
class IConstantLayer : public ILayer {};
class ICastLayer : public ILayer {};
class ISelectLayer : public ILayer {};

class IShuffleLayer : public ILayer {
 public:
  virtual void setFirstTranspose(Permutation permutation) noexcept = 0;
  virtual void setReshapeDimensions(Dims const& dimensions) noexcept = 0;
  virtual void setSecondTranspose(Permutation permutation) noexcept = 0;
};

class INormalizationLayer : public ILayer {
 public:
  virtual void setEpsilon(float eps) noexcept = 0;
  virtual float getEpsilon() const noexcept = 0;
};

class IAttention : public INoCopy {
 public:
  virtual bool setMask(ITensor& mask) noexcept = 0;
  virtual bool setKeyValueLengths(ITensor* lengths) noexcept = 0;
  virtual bool setDecomposable(bool decomposable) noexcept = 0;
  virtual bool getDecomposable() const noexcept = 0;
  virtual bool setName(char const* name) noexcept = 0;
  virtual ITensor* getOutput(std::int32_t index) const noexcept = 0;

 protected:
  virtual ~IAttention() noexcept = default;
};

class INetworkDefinition : public INoCopy {
 public:
  virtual ~INetworkDefinition() noexcept = default;
  virtual ITensor* addInput(char const* name, DataType type, Dims const& dimensions) noexcept = 0;
  virtual void markOutput(ITensor& tensor) noexcept = 0;
  virtual std::int32_t getNbLayers() const noexcept = 0;
  virtual std::int32_t getNbInputs() const noexcept = 0;
  virtual ITensor* getInput(std::int32_t index) const noexcept = 0;
  virtual IActivationLayer* addActivation(ITensor& input, ActivationType type) noexcept = 0;
  virtual IElementWiseLayer* addElementWise(ITensor& input1, ITensor& input2,
                                            ElementWiseOperation op) noexcept = 0;
  virtual IUnaryLayer* addUnary(ITensor& input, UnaryOperation operation) noexcept = 0;
  virtual IShuffleLayer* addShuffle(ITensor& input) noexcept = 0;
  virtual IReduceLayer* addReduce(ITensor& input, ReduceOperation operation,
                                  std::uint32_t reduceAxes, bool keepDimensions) noexcept = 0;
  virtual IGatherLayer* addGather(ITensor& data, ITensor& indices, std::int32_t axis) noexcept = 0;
  virtual IMatrixMultiplyLayer* addMatrixMultiply(ITensor& input0, MatrixOperation op0,
                                                  ITensor& input1,
                                                  MatrixOperation op1) noexcept = 0;
  virtual IConstantLayer* addConstant(Dims const& dimensions, Weights weights) noexcept = 0;
  virtual ICastLayer* addCast(ITensor& input, DataType toType) noexcept = 0;
  virtual ISelectLayer* addSelect(ITensor& condition, ITensor& thenInput,
                                  ITensor& elseInput) noexcept = 0;
  virtual INormalizationLayer* addNormalizationV2(ITensor& input, ITensor& scale, ITensor& bias,
                                                  std::uint32_t axesMask) noexcept = 0;
  virtual IAttention* addAttentionV2(ITensor& query, ITensor& key, ITensor& value,
                                     AttentionNormalizationOp normOp,
                                     CausalMaskKind causalKind) noexcept = 0;
};

class IOptimizationProfile : public INoCopy {
 public:
  virtual bool setDimensions(char const* inputName, OptProfileSelector select,
                             Dims const& dims) noexcept = 0;
  virtual Dims getDimensions(char const* inputName, OptProfileSelector select) const noexcept = 0;
  virtual bool isValid() const noexcept = 0;

 protected:
  virtual ~IOptimizationProfile() noexcept = default;
};

class ITimingCache : public INoCopy {
 public:
  virtual ~ITimingCache() noexcept = default;
  virtual IHostMemory* serialize() const noexcept = 0;
};

class IBuilderConfig : public INoCopy {
 public:
  virtual ~IBuilderConfig() noexcept = default;
  virtual void clearFlag(BuilderFlag builderFlag) noexcept = 0;
  virtual void setFlag(BuilderFlag builderFlag) noexcept = 0;
  virtual bool getFlag(BuilderFlag builderFlag) const noexcept = 0;
  virtual std::int32_t addOptimizationProfile(IOptimizationProfile const* profile) noexcept = 0;
  virtual ITimingCache* createTimingCache(void const* blob, std::size_t size) const noexcept = 0;
  virtual bool setTimingCache(ITimingCache const& cache, bool ignoreMismatch) noexcept = 0;
  virtual ITimingCache const* getTimingCache() const noexcept = 0;
};

class IBuilder : public INoCopy {
 public:
  virtual ~IBuilder() noexcept = default;
  virtual IBuilderConfig* createBuilderConfig() noexcept = 0;
  virtual INetworkDefinition* createNetworkV2(NetworkDefinitionCreationFlags flags) noexcept = 0;
  virtual IOptimizationProfile* createOptimizationProfile() noexcept = 0;
  virtual IHostMemory* buildSerializedNetwork(INetworkDefinition& network,
                                              IBuilderConfig& config) noexcept = 0;
};

class IExecutionContext : public INoCopy {
 public:
  virtual ~IExecutionContext() noexcept = default;
  virtual void setDeviceMemoryV2(void* memory, std::int64_t size) noexcept = 0;
  virtual std::int32_t getOptimizationProfile() const noexcept = 0;
  virtual bool setOptimizationProfileAsync(std::int32_t profileIndex,
                                           cudaStream_t stream) noexcept = 0;
  virtual bool setInputShape(char const* tensorName, Dims const& dims) noexcept = 0;
  virtual Dims getTensorShape(char const* tensorName) const noexcept = 0;
  virtual bool setTensorAddress(char const* tensorName, void* data) noexcept = 0;
  virtual bool enqueueV3(cudaStream_t stream) noexcept = 0;
};

class ICudaEngine : public INoCopy {
 public:
  virtual ~ICudaEngine() noexcept = default;
  virtual Dims getTensorShape(char const* tensorName) const noexcept = 0;
  virtual DataType getTensorDataType(char const* tensorName) const noexcept = 0;
  virtual TensorIOMode getTensorIOMode(char const* tensorName) const noexcept = 0;
  virtual IExecutionContext* createExecutionContext(
      ExecutionContextAllocationStrategy strategy =
          ExecutionContextAllocationStrategy::kSTATIC) noexcept = 0;
  virtual std::int64_t getDeviceMemorySizeV2() const noexcept = 0;
  virtual std::int32_t getNbOptimizationProfiles() const noexcept = 0;
  virtual Dims getProfileShape(char const* tensorName, std::int32_t profileIndex,
                               OptProfileSelector select) const noexcept = 0;
  virtual std::int32_t getNbIOTensors() const noexcept = 0;
  virtual char const* getIOTensorName(std::int32_t index) const noexcept = 0;
};

class IRuntime : public INoCopy {
 public:
  virtual ~IRuntime() noexcept = default;
  virtual ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept = 0;
};

IBuilder* createInferBuilder(ILogger& logger) noexcept;
IRuntime* createInferRuntime(ILogger& logger) noexcept;

}  // namespace nvinfer1
