// TensorRT on the emulated device: networks are recorded by its rules, and what it would refuse, or
// leave undefined, is told.

#include <NvInfer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cuda/check.h"
#include "device_buffer.h"
#include "emulator/control.h"

namespace cfaa::cuda {
namespace {

using namespace nvinfer1;

class Log final : public ILogger {
 public:
  void log(Severity severity, char const* msg) noexcept override {
    if (severity <= Severity::kERROR) last = msg;
  }
  std::string last;
};

Dims shape(std::vector<int64_t> extents) {
  Dims dims{};
  dims.nbDims = static_cast<int32_t>(extents.size());
  std::copy(extents.begin(), extents.end(), dims.d);
  return dims;
}

constexpr int64_t kWidth = 4;

class EmulatedTensorRT : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "fast";
    builder_.reset(createInferBuilder(log_));
    network_.reset(builder_->createNetworkV2(0));
    config_.reset(builder_->createBuilderConfig());
    weights_.resize(16);
    std::iota(weights_.begin(), weights_.end(), -5.0f);
  }
  void TearDown() override {
    emulator::set_library_capture_refused(false);
    emulator::set_tensorrt_version(110100);
  }

  ITensor& input(const char* name, DataType type, std::vector<int64_t> extents) {
    return *network_->addInput(name, type, shape(extents));
  }
  ITensor& constant(std::vector<int64_t> extents) {
    const Dims dims = shape(extents);
    const int64_t count = std::accumulate(extents.begin(), extents.end(), int64_t{1},
                                          [](int64_t a, int64_t b) { return a * b; });
    return *network_->addConstant(dims, {DataType::kFLOAT, weights_.data(), count})->getOutput(0);
  }
  ITensor& cast(ITensor& x, DataType type) { return *network_->addCast(x, type)->getOutput(0); }

  // y = x W with x (N, 4), N in 1 ... 8.
  void product() {
    ITensor& x = input("x", DataType::kFLOAT, {-1, kWidth});
    ITensor& y = *network_
                      ->addMatrixMultiply(x, MatrixOperation::kNONE, constant({kWidth, kWidth}),
                                          MatrixOperation::kNONE)
                      ->getOutput(0);
    y.setName("y");
    network_->markOutput(y);
  }
  void profile(int64_t least, int64_t most) {
    IOptimizationProfile* made = builder_->createOptimizationProfile();
    made->setDimensions("x", OptProfileSelector::kMIN, shape({least, kWidth}));
    made->setDimensions("x", OptProfileSelector::kOPT, shape({most, kWidth}));
    made->setDimensions("x", OptProfileSelector::kMAX, shape({most, kWidth}));
    ASSERT_GE(config_->addOptimizationProfile(made), 0);
  }
  std::unique_ptr<IHostMemory> build() {
    return std::unique_ptr<IHostMemory>(builder_->buildSerializedNetwork(*network_, *config_));
  }
  void load() {
    product();
    profile(1, 8);
    const auto bytes = build();
    ASSERT_NE(bytes, nullptr) << log_.last;
    runtime_.reset(createInferRuntime(log_));
    engine_.reset(runtime_->deserializeCudaEngine(bytes->data(), bytes->size()));
    ASSERT_NE(engine_, nullptr) << log_.last;
  }
  std::unique_ptr<IExecutionContext> ready(void* memory, float* x, float* y, int64_t rows) {
    std::unique_ptr<IExecutionContext> context(
        engine_->createExecutionContext(ExecutionContextAllocationStrategy::kUSER_MANAGED));
    context->setDeviceMemoryV2(memory, engine_->getDeviceMemorySizeV2());
    EXPECT_TRUE(context->setInputShape("x", shape({rows, kWidth})));
    EXPECT_TRUE(context->setTensorAddress("x", x));
    EXPECT_TRUE(context->setTensorAddress("y", y));
    return context;
  }

  Log log_;
  std::vector<float> weights_;
  std::unique_ptr<IBuilder> builder_;
  std::unique_ptr<INetworkDefinition> network_;
  std::unique_ptr<IBuilderConfig> config_;
  std::unique_ptr<IRuntime> runtime_;
  std::unique_ptr<ICudaEngine> engine_;
};

class Stream {
 public:
  Stream() { CFAA_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

TEST_F(EmulatedTensorRT, RunsInStreamOrderAndFromGraphs) {
  load();
  const std::vector<float> ones(2 * kWidth, 1.0f), twos(2 * kWidth, 2.0f);
  DeviceBuffer<float> x(ones), y(2 * kWidth), memory(1024);
  const auto context = ready(memory.data(), x.data(), y.data(), 2);
  Stream stream;

  ASSERT_TRUE(context->enqueueV3(stream)) << log_.last;
  CFAA_CUDA_CHECK(cudaStreamSynchronize(stream));
  const std::vector<float> first = y.values();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  CFAA_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  ASSERT_TRUE(context->enqueueV3(stream)) << log_.last;
  CFAA_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CFAA_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CFAA_CUDA_CHECK(
      cudaMemcpy(x.data(), twos.data(), 2 * kWidth * sizeof(float), cudaMemcpyHostToDevice));
  CFAA_CUDA_CHECK(cudaGraphLaunch(executable, stream));
  CFAA_CUDA_CHECK(cudaStreamSynchronize(stream));
  const std::vector<float> second = y.values();
  CFAA_CUDA_CHECK(cudaGraphExecDestroy(executable));
  CFAA_CUDA_CHECK(cudaGraphDestroy(graph));

  for (int64_t j = 0; j < kWidth; ++j) {  // columns of -5, -4, ...
    const float sum = 4.0f * static_cast<float>(j) + 4.0f;
    EXPECT_EQ(first[static_cast<std::size_t>(j)], sum);
    EXPECT_EQ(second[static_cast<std::size_t>(kWidth + j)], 2 * sum);
  }
}

// The rules of networks.

TEST_F(EmulatedTensorRT, TypesThatDifferAreRefused) {
  ITensor& x = input("x", DataType::kFLOAT, {2, kWidth});
  ITensor& half = cast(x, DataType::kHALF);

  EXPECT_EQ(network_->addElementWise(x, half, ElementWiseOperation::kSUM), nullptr);
  EXPECT_NE(log_.last.find("Float and Half"), std::string::npos) << log_.last;
  EXPECT_EQ(network_->addMatrixMultiply(half, MatrixOperation::kNONE, constant({kWidth, kWidth}),
                                        MatrixOperation::kNONE),
            nullptr);
  EXPECT_EQ(network_->addNormalizationV2(half, constant({1, kWidth}), constant({1, kWidth}), 2),
            nullptr);
  EXPECT_EQ(network_->addSelect(x, x, x), nullptr) << "the condition is no Bool";
  EXPECT_EQ(network_->addElementWise(x, x, ElementWiseOperation::kAND), nullptr);
  EXPECT_EQ(network_->addGather(x, x, 0), nullptr) << "indices are whole numbers";
}

TEST_F(EmulatedTensorRT, ShapesThatDoNotFitAreRefused) {
  ITensor& x = input("x", DataType::kFLOAT, {-1, kWidth});

  EXPECT_EQ(network_->addElementWise(x, constant({1, 3}), ElementWiseOperation::kSUM), nullptr);
  EXPECT_EQ(network_->addElementWise(x, constant({kWidth}), ElementWiseOperation::kSUM), nullptr)
      << "ranks are not extended";
  EXPECT_EQ(network_->addMatrixMultiply(x, MatrixOperation::kNONE, constant({2, 3}),
                                        MatrixOperation::kNONE),
            nullptr);
  EXPECT_EQ(network_->addConstant(shape({3}), {DataType::kFLOAT, weights_.data(), 4}), nullptr);
  EXPECT_EQ(network_->addInput("x", DataType::kFLOAT, shape({1})), nullptr) << "a name twice";
}

TEST_F(EmulatedTensorRT, ShapesAreInferredWithUnknownExtents) {
  ITensor& ids = input("ids", DataType::kINT32, {-1, -1});
  ITensor& rows = *network_->addGather(constant({3, kWidth}), ids, 0)->getOutput(0);
  IShuffleLayer* heads = network_->addShuffle(rows);
  heads->setReshapeDimensions(shape({0, 0, 2, 2}));
  heads->setSecondTranspose({0, 2, 1, 3});
  const Dims dims = heads->getOutput(0)->getDimensions();

  ASSERT_EQ(dims.nbDims, 4);
  EXPECT_EQ(dims.d[0], -1);
  EXPECT_EQ(dims.d[1], 2);
  EXPECT_EQ(dims.d[2], -1);
  EXPECT_EQ(dims.d[3], 2);
}

TEST_F(EmulatedTensorRT, AMaskGivesQueriesAndKeysInFull) {
  ITensor& q = input("q", DataType::kFLOAT, {-1, 2, -1, 4});
  ITensor& mask = input("mask", DataType::kINT32, {-1, 1, 1, -1});
  IAttention* attention =
      network_->addAttentionV2(q, q, q, AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kNONE);
  ASSERT_NE(attention, nullptr) << log_.last;

  EXPECT_FALSE(attention->setMask(cast(mask, DataType::kBOOL)));
  EXPECT_NE(log_.last.find("in full"), std::string::npos) << log_.last;
}

TEST_F(EmulatedTensorRT, AttentionWithoutAFusedKernelMustBeDecomposable) {
  ITensor& q = input("q", DataType::kFLOAT, {1, 2, 3, 4});
  IAttention* attention =
      network_->addAttentionV2(q, q, q, AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kNONE);
  attention->getOutput(0)->setName("out");
  network_->markOutput(*attention->getOutput(0));

  EXPECT_EQ(build(), nullptr);
  EXPECT_NE(log_.last.find("not decomposable"), std::string::npos) << log_.last;
  attention->setDecomposable(true);
  EXPECT_NE(build(), nullptr) << log_.last;
}

TEST_F(EmulatedTensorRT, DynamicInputsNeedAProfile) {
  product();

  EXPECT_EQ(build(), nullptr);
  EXPECT_NE(log_.last.find("no optimization profile"), std::string::npos) << log_.last;
}

TEST_F(EmulatedTensorRT, WeightsMustLastUntilTheBuild) {
  product();
  profile(1, 8);
  weights_[3] = 42;  // as memory that was freed and given to somebody else

  EXPECT_EQ(build(), nullptr);
  EXPECT_NE(log_.last.find("changed or were freed"), std::string::npos) << log_.last;
}

TEST_F(EmulatedTensorRT, EnginesOfAnotherVersionOrDamagedAreRefused) {
  product();
  profile(1, 8);
  const auto bytes = build();
  std::vector<char> damaged(bytes->size());
  std::memcpy(damaged.data(), bytes->data(), bytes->size());
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  runtime_.reset(createInferRuntime(log_));

  EXPECT_EQ(runtime_->deserializeCudaEngine(damaged.data(), damaged.size()), nullptr);
  EXPECT_NE(log_.last.find("damaged"), std::string::npos) << log_.last;
  EXPECT_EQ(runtime_->deserializeCudaEngine(damaged.data(), 7), nullptr);
  emulator::set_tensorrt_version(110101);
  EXPECT_EQ(runtime_->deserializeCudaEngine(bytes->data(), bytes->size()), nullptr);
  EXPECT_NE(log_.last.find("Version tag"), std::string::npos) << log_.last;
}

// The rules of running.

TEST_F(EmulatedTensorRT, ShapesOutsideOfTheProfileAreRefused) {
  load();
  std::unique_ptr<IExecutionContext> context(engine_->createExecutionContext());

  EXPECT_FALSE(context->setInputShape("x", shape({9, kWidth})));
  EXPECT_NE(log_.last.find("outside of profile 0"), std::string::npos) << log_.last;
  EXPECT_FALSE(context->setInputShape("x", shape({0, kWidth})));
  EXPECT_FALSE(context->setInputShape("x", shape({2, kWidth + 1})));
  EXPECT_FALSE(context->setInputShape("z", shape({2, kWidth})));
  EXPECT_FALSE(context->setOptimizationProfileAsync(1, nullptr));
  EXPECT_TRUE(context->setInputShape("x", shape({8, kWidth})));
}

TEST_F(EmulatedTensorRT, WhatWasNotSetIsNamed) {
  load();
  DeviceBuffer<float> x(8 * kWidth), y(8 * kWidth);
  Stream stream;
  std::unique_ptr<IExecutionContext> context(engine_->createExecutionContext());

  EXPECT_FALSE(context->enqueueV3(stream));
  EXPECT_NE(log_.last.find("shape of the input x"), std::string::npos) << log_.last;
  EXPECT_TRUE(context->setInputShape("x", shape({8, kWidth})));
  EXPECT_TRUE(context->setTensorAddress("x", x.data()));
  EXPECT_FALSE(context->enqueueV3(stream));
  EXPECT_NE(log_.last.find("address of y"), std::string::npos) << log_.last;
  EXPECT_FALSE(context->setTensorAddress("y", y.data() + 1)) << "not aligned";
  const auto managed = ready(nullptr, x.data(), y.data(), 8);
  managed->setDeviceMemoryV2(x.data(), 16);
  EXPECT_FALSE(managed->enqueueV3(stream));
  EXPECT_NE(log_.last.find("memory for activations"), std::string::npos) << log_.last;
}

TEST_F(EmulatedTensorRT, AddressesAreDeviceMemoryOfTheRightSize) {
  load();
  DeviceBuffer<float> x(8 * kWidth), y(8 * kWidth), small(8 * kWidth - 1), memory(1024);
  alignas(256) static float host[8 * kWidth];
  Stream stream;
  const auto on_host = ready(memory.data(), host, y.data(), 8);
  const auto too_small = ready(memory.data(), x.data(), small.data(), 8);

  EXPECT_DEATH(on_host->enqueueV3(stream), "enqueueV3: x is host memory");
  EXPECT_DEATH(too_small->enqueueV3(stream), "enqueueV3: y needs 128 bytes");
}

TEST_F(EmulatedTensorRT, TheFirstRunOfAShapeCannotBeCaptured) {
  load();
  DeviceBuffer<float> x(8 * kWidth), y(8 * kWidth), memory(1024);
  const auto context = ready(memory.data(), x.data(), y.data(), 8);
  Stream stream;
  CFAA_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));

  EXPECT_FALSE(context->enqueueV3(stream));

  cudaGraph_t graph = nullptr;
  EXPECT_NE(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGetLastError();
}

TEST_F(EmulatedTensorRT, TwoStreamsMayNotShareMemoryForActivations) {
  load();
  DeviceBuffer<float> x(8 * kWidth), y(8 * kWidth), memory(1024);
  const auto one = ready(memory.data(), x.data(), y.data(), 8);
  const auto two = ready(memory.data(), x.data(), y.data(), 8);
  Stream a, b;
  EXPECT_TRUE(one->enqueueV3(a));

  EXPECT_DEATH(two->enqueueV3(b), "two streams share one memory");

  CFAA_CUDA_CHECK(cudaStreamSynchronize(a));
}

TEST_F(EmulatedTensorRT, AContextOutlivesItsWorkAndAnEngineItsContexts) {
  load();
  DeviceBuffer<float> x(8 * kWidth), y(8 * kWidth), memory(1024);
  auto context = ready(memory.data(), x.data(), y.data(), 8);
  Stream stream;

  EXPECT_DEATH(engine_.reset(), "before its contexts");
  EXPECT_TRUE(context->enqueueV3(stream));
  EXPECT_DEATH(context.reset(), "while its work is under way");

  CFAA_CUDA_CHECK(cudaStreamSynchronize(stream));
}

// A value has its type's precision, and TF32 is on unless it is turned off.
TEST_F(EmulatedTensorRT, RoundsAsTheTypesSay) {
  weights_[0] = 1.0f + 1.0f / 4096;  // neither half, bfloat16 nor TF32 holds it
  for (const bool tf32 : {false, true}) {
    for (const DataType type : {DataType::kFLOAT, DataType::kHALF, DataType::kBF16}) {
      network_.reset(builder_->createNetworkV2(0));
      config_.reset(builder_->createBuilderConfig());
      if (!tf32) config_->clearFlag(BuilderFlag::kTF32);
      ITensor& x = cast(input("x", DataType::kFLOAT, {1, 1}), type);
      ITensor& product =
          *network_
               ->addMatrixMultiply(x, MatrixOperation::kNONE, cast(constant({1, 1}), type),
                                   MatrixOperation::kNONE)
               ->getOutput(0);
      IUnaryLayer* y = network_->addUnary(cast(product, DataType::kFLOAT), UnaryOperation::kABS);
      y->getOutput(0)->setName("y");
      network_->markOutput(*y->getOutput(0));
      const auto bytes = build();
      ASSERT_NE(bytes, nullptr) << log_.last;
      std::unique_ptr<IRuntime> runtime(createInferRuntime(log_));
      std::unique_ptr<ICudaEngine> engine(
          runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
      std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
      DeviceBuffer<float> from(std::vector<float>{1.0f}), to(1);
      context->setTensorAddress("x", from.data());
      context->setTensorAddress("y", to.data());
      Stream stream;

      ASSERT_TRUE(context->enqueueV3(stream)) << log_.last;
      CFAA_CUDA_CHECK(cudaStreamSynchronize(stream));

      const bool exact = type == DataType::kFLOAT && !tf32;
      EXPECT_EQ(to.values()[0], exact ? weights_[0] : 1.0f);
    }
  }
}

}  // namespace
}  // namespace cfaa::cuda
