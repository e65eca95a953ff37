#if CFAA_HAS_TENSORRT

#include "cuda/tensorrt/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cuda/check.h"
#include "cuda/device.h"
#include "cuda/nvtx.h"
#include "cuda/stream.h"
#include "cuda/tensorrt/layers.h"
#include "host/core/error.h"
#include "host/core/log.h"

namespace cfaa::cuda {
namespace {

using nvinfer1::Dims;

constexpr int kSlots = 2;
constexpr int64_t kShortestBucket = 16;

class DeviceBytes {
 public:
  DeviceBytes(Device& device, std::size_t bytes)
      : device_(device), data_(device.allocate(bytes)), bytes_(bytes) {}
  ~DeviceBytes() { device_.release(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Device& device_;
  void* data_;
  std::size_t bytes_;
};

// A bucket of a slot: its context, and the graph once it is captured.
struct BucketRun {
  std::unique_ptr<nvinfer1::IExecutionContext> context;
  cudaGraphExec_t graph = nullptr;
  bool ran = false;
  bool plain = false;  // the capture was refused

  BucketRun() = default;
  ~BucketRun() {
    if (graph != nullptr) CFAA_CUDA_WARN(cudaGraphExecDestroy(graph));
  }
  BucketRun(const BucketRun&) = delete;
  BucketRun& operator=(const BucketRun&) = delete;
};

struct Slot {
  Slot(Device& device, std::size_t tokens, std::size_t rows, std::size_t width,
       std::size_t activation_bytes, std::size_t buckets)
      : ids(device, tokens * sizeof(int32_t)),
        lengths(device, rows * sizeof(int32_t)),
        vectors(device, rows * width * sizeof(float)),
        activations(device, activation_bytes),
        host_ids(tokens),
        host_lengths(rows),
        host_vectors(rows * width),
        runs(buckets) {}

  Stream stream;
  DeviceBytes ids, lengths, vectors, activations;
  Pinned<int32_t> host_ids, host_lengths;
  Pinned<float> host_vectors;
  std::vector<BucketRun> runs;
  int64_t rows = 0;  // of the batch under way; 0: free
};

class TensorRTEngine final : public NetworkEngine {
 public:
  TensorRTEngine(Context& context, std::shared_ptr<TensorRTLog> log,
                 std::unique_ptr<nvinfer1::IRuntime> runtime,
                 std::unique_ptr<nvinfer1::ICudaEngine> engine, const EngineIdentity& identity);
  ~TensorRTEngine() override;

  int64_t width() const override { return width_; }
  int slots() const override { return kSlots; }
  int64_t padded_length(int64_t length) const override { return bucket_of(length).length; }
  int64_t batch_rows(int64_t padded_length) const override { return bucket_of(padded_length).rows; }
  void start(int slot, const TokenBatch& batch) override;
  MatrixView<const float> finish(int slot) override;
  std::string description() const override { return description_; }

 private:
  const LengthBucket& bucket_of(int64_t length) const;
  bool uses(const char* tensor) const;
  void fill(Slot& slot, const LengthBucket& bucket, const TokenBatch& batch);
  void prepare(Slot& slot, std::size_t index);
  bool queue(Slot& slot, std::size_t index);
  void capture(Slot& slot, std::size_t index);

  // In the order in which they must go: slots first, the log last.
  std::shared_ptr<TensorRTLog> log_;
  std::unique_ptr<nvinfer1::IRuntime> runtime_;
  std::unique_ptr<nvinfer1::ICudaEngine> engine_;
  std::vector<LengthBucket> buckets_;
  int64_t width_ = 0;
  std::string description_;
  std::unique_ptr<DeviceBytes> positions_;  // 0, 1, ...: a bucket reads as many as it is long
  std::vector<std::unique_ptr<Slot>> slots_;
};

TensorRTEngine::TensorRTEngine(Context& context, std::shared_ptr<TensorRTLog> log,
                               std::unique_ptr<nvinfer1::IRuntime> runtime,
                               std::unique_ptr<nvinfer1::ICudaEngine> engine,
                               const EngineIdentity& identity)
    : log_(std::move(log)),
      runtime_(std::move(runtime)),
      engine_(std::move(engine)),
      buckets_(identity.buckets) {
  CFAA_ASSERT(engine_->getNbOptimizationProfiles() == static_cast<int>(buckets_.size()));
  const Dims output = engine_->getTensorShape(kVectors);
  CFAA_ASSERT(output.nbDims == 2 && output.d[1] > 0);
  width_ = output.d[1];

  Device& device = device_of(context);
  std::vector<int32_t> places(static_cast<std::size_t>(buckets_.back().length));
  std::iota(places.begin(), places.end(), 0);
  positions_ = std::make_unique<DeviceBytes>(device, places.size() * sizeof(int32_t));
  device.copy_from_host(positions_->data(), places.data(), positions_->bytes());
  device.synchronize();

  int64_t tokens = 0, rows = 0;
  std::string shapes;
  for (const LengthBucket& bucket : buckets_) {
    tokens = std::max(tokens, bucket.length * bucket.rows);
    rows = std::max(rows, bucket.rows);
    shapes += fmt::format(" {}x{}", bucket.rows, bucket.length);
  }
  for (int slot = 0; slot < kSlots; ++slot) {
    slots_.push_back(std::make_unique<Slot>(
        device, static_cast<std::size_t>(tokens), static_cast<std::size_t>(rows),
        static_cast<std::size_t>(width_),
        static_cast<std::size_t>(engine_->getDeviceMemorySizeV2()), buckets_.size()));
  }
  description_ = fmt::format("TensorRT {} on {}, {}, rows x length{}", identity.tensorrt,
                             identity.gpu, name_of(identity.precision), shapes);
}

// A batch that nobody finished may still run.
TensorRTEngine::~TensorRTEngine() {
  for (const auto& slot : slots_) CFAA_CUDA_WARN(cudaStreamSynchronize(slot->stream));
}

const LengthBucket& TensorRTEngine::bucket_of(int64_t length) const {
  CFAA_ASSERT(length >= 1 && length <= buckets_.back().length);
  return *std::find_if(buckets_.begin(), buckets_.end(),
                       [&](const LengthBucket& bucket) { return bucket.length >= length; });
}

// A network that masks nothing has no lengths, for one.
bool TensorRTEngine::uses(const char* tensor) const {
  for (int i = 0; i < engine_->getNbIOTensors(); ++i) {
    if (std::string_view(engine_->getIOTensorName(i)) == tensor) return true;
  }
  return false;
}

void TensorRTEngine::fill(Slot& slot, const LengthBucket& bucket, const TokenBatch& batch) {
  const int64_t rows = batch.ids.rows(), columns = batch.ids.cols();
  std::fill_n(slot.host_ids.data(), bucket.rows * bucket.length, 0);
  std::fill_n(slot.host_lengths.data(), bucket.rows, 1);
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t length = batch.lengths(row);
    CFAA_ASSERT(length >= 1 && length <= columns);
    const VectorView<const int32_t> from = batch.ids[row];
    std::copy_n(from.data, columns, slot.host_ids.data() + row * bucket.length);
    slot.host_lengths[static_cast<std::size_t>(row)] = length;
  }
}

void TensorRTEngine::prepare(Slot& slot, std::size_t index) {
  BucketRun& run = slot.runs[index];
  const LengthBucket& bucket = buckets_[index];
  run.context = owned(
      engine_->createExecutionContext(nvinfer1::ExecutionContextAllocationStrategy::kUSER_MANAGED),
      *log_, "make an execution context");
  nvinfer1::IExecutionContext& context = *run.context;
  require(context.setOptimizationProfileAsync(static_cast<int32_t>(index), slot.stream), *log_,
          "choose a profile");
  const auto bind = [&](const char* name, void* memory, const Dims& shape) {
    if (!uses(name)) return;
    require(context.setInputShape(name, shape), *log_, "set an input's shape");
    require(context.setTensorAddress(name, memory), *log_, "set an input's address");
  };
  bind(kIds, slot.ids.data(), Dims{2, {bucket.rows, bucket.length}});
  bind(kLengths, slot.lengths.data(), Dims{1, {bucket.rows}});
  bind(kPositions, positions_->data(), Dims{1, {bucket.length}});
  require(context.setTensorAddress(kVectors, slot.vectors.data()), *log_,
          "set the output's address");
  context.setDeviceMemoryV2(slot.activations.data(),
                            static_cast<int64_t>(slot.activations.bytes()));
}

// Copies, the network, copies back. False where TensorRT refused the network.
bool TensorRTEngine::queue(Slot& slot, std::size_t index) {
  const LengthBucket& bucket = buckets_[index];
  const auto copy = [&](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    CFAA_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, slot.stream));
  };
  const std::size_t rows = static_cast<std::size_t>(bucket.rows);
  copy(slot.ids.data(), slot.host_ids.data(),
       rows * static_cast<std::size_t>(bucket.length) * sizeof(int32_t), cudaMemcpyHostToDevice);
  copy(slot.lengths.data(), slot.host_lengths.data(), rows * sizeof(int32_t),
       cudaMemcpyHostToDevice);
  if (!slot.runs[index].context->enqueueV3(slot.stream)) return false;
  copy(slot.host_vectors.data(), slot.vectors.data(),
       rows * static_cast<std::size_t>(width_) * sizeof(float), cudaMemcpyDeviceToHost);
  return true;
}

void TensorRTEngine::capture(Slot& slot, std::size_t index) {
  BucketRun& run = slot.runs[index];
  CFAA_CUDA_CHECK(cudaStreamBeginCapture(slot.stream, cudaStreamCaptureModeThreadLocal));
  std::string refusal;
  try {
    if (!queue(slot, index)) refusal = log_->take_error();
  } catch (const Error& error) {
    refusal = error.what();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(slot.stream, &graph);
  if (refusal.empty() && ended != cudaSuccess) refusal = describe(ended);
  if (refusal.empty()) {
    const cudaError_t made = cudaGraphInstantiate(&run.graph, graph, 0);
    if (made != cudaSuccess) refusal = describe(made);
  }
  if (graph != nullptr) CFAA_CUDA_WARN(cudaGraphDestroy(graph));
  if (refusal.empty()) return;
  cudaGetLastError();  // the refusal is dealt with here, not at somebody else's next check
  run.graph = nullptr;
  run.plain = true;
  log_once("the encoder cannot be captured in CUDA graphs (" + refusal + "); it runs without");
}

void TensorRTEngine::start(int slot_index, const TokenBatch& batch) {
  const Range range("encoder batch");
  CFAA_ASSERT(slot_index >= 0 && slot_index < kSlots);
  Slot& slot = *slots_[static_cast<std::size_t>(slot_index)];
  CFAA_ASSERT(slot.rows == 0 && "the slot is under way");
  const LengthBucket& bucket = bucket_of(batch.ids.cols());
  const auto index = static_cast<std::size_t>(&bucket - buckets_.data());
  CFAA_ASSERT(batch.ids.rows() >= 1 && batch.ids.rows() <= bucket.rows);
  CFAA_ASSERT(batch.lengths.size() == batch.ids.rows() && batch.ids.contiguous());
  fill(slot, bucket, batch);

  BucketRun& run = slot.runs[index];
  if (run.context == nullptr) prepare(slot, index);
  if (run.ran && run.graph == nullptr && !run.plain) capture(slot, index);
  if (run.graph != nullptr) {
    CFAA_CUDA_CHECK(cudaGraphLaunch(run.graph, slot.stream));
  } else {
    require(queue(slot, index), *log_, "run the encoder");
  }
  run.ran = true;
  slot.rows = batch.ids.rows();
}

MatrixView<const float> TensorRTEngine::finish(int slot_index) {
  CFAA_ASSERT(slot_index >= 0 && slot_index < kSlots);
  Slot& slot = *slots_[static_cast<std::size_t>(slot_index)];
  CFAA_ASSERT(slot.rows > 0 && "nothing was started in the slot");
  slot.stream.synchronize();
  return {slot.host_vectors.data(), {std::exchange(slot.rows, 0), width_}};
}

}  // namespace

std::vector<LengthBucket> length_buckets(int64_t max_length, int64_t batch_tokens) {
  std::vector<LengthBucket> buckets;
  const auto add = [&](int64_t length) {
    buckets.push_back({length, std::max<int64_t>(1, batch_tokens / length)});
  };
  for (int64_t length = kShortestBucket; length < max_length; length *= 2) add(length);
  add(max_length);
  return buckets;
}

std::string gpu_of(Context& context) {
  const cudaDeviceProp& properties = device_of(context).properties();
  return fmt::format("{} sm_{}{}", properties.name, properties.major, properties.minor);
}

std::unique_ptr<NetworkEngine> load_tensorrt_engine(Context& context,
                                                    std::shared_ptr<TensorRTLog> log,
                                                    std::span<const std::byte> bytes,
                                                    const EngineIdentity& identity) {
  auto runtime = owned(nvinfer1::createInferRuntime(*log), *log, "start its runtime");
  std::unique_ptr<nvinfer1::ICudaEngine> engine(
      runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
  if (engine == nullptr) return nullptr;
  return std::make_unique<TensorRTEngine>(context, std::move(log), std::move(runtime),
                                          std::move(engine), identity);
}

}  // namespace cfaa::cuda

#endif
