// TensorRT's runtime: engines and execution contexts.

#include <algorithm>
#include <cstring>
#include <optional>

#include "NvInfer.h"
#include "fail.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"
#include "tensorrt_graph.h"

namespace emulator::tensorrt {
namespace {

using namespace nvinfer1;

constexpr std::uintptr_t alignment = 256;

// An engine that is loaded: what its contexts share, and what their queued work keeps.
struct Program {
  std::shared_ptr<const Graph> graph;
  std::map<int, std::shared_ptr<const Value>> constants;
  std::vector<std::int64_t> memory;  // bytes for activations, by profile
  ILogger* log = nullptr;
  int contexts = 0;

  const Tensor& tensor(int index) const { return graph->tensors[static_cast<std::size_t>(index)]; }
  void complain(const std::string& message) const {
    log->log(ILogger::Severity::kERROR, message.c_str());
  }
};
using ProgramPtr = std::shared_ptr<Program>;

// Which stream last used memory for activations: two streams may not share it.
std::map<const void*, cudaStream_t>& memory_users() {
  static auto* users = new std::map<const void*, cudaStream_t>;
  return *users;
}

std::int64_t activation_bytes(const Graph& graph, const Profile* profile) {
  std::vector<Form> forms;
  for (const Tensor& tensor : graph.tensors) forms.push_back({tensor.type, tensor.dims});
  for (int input : graph.inputs) {
    Form& form = forms[static_cast<std::size_t>(input)];
    if (profile == nullptr) continue;
    const auto& shapes = profile->shapes[static_cast<int>(OptProfileSelector::kMAX)];
    const auto found = shapes.find(graph.tensors[static_cast<std::size_t>(input)].name);
    if (found != shapes.end()) form.dims = found->second;
  }
  if (!infer_all(graph, forms).empty()) return 0;
  std::int64_t largest = 0;
  for (const Layer& layer : graph.layers) {
    if (layer.kind == Kind::constant) continue;
    const Form& form = forms[static_cast<std::size_t>(layer.output)];
    largest = std::max(largest, volume(form.dims) * static_cast<std::int64_t>(bytes_of(form.type)));
  }
  return 2 * largest;
}

// Shared by a context and its queued work.
struct Use {
  bool alive = true;
  int queued = 0;
};

class ExecutionContext final : public IExecutionContext {
 public:
  ExecutionContext(ProgramPtr program, bool own_memory)
      : program_(std::move(program)), own_memory_(own_memory), use_(std::make_shared<Use>()) {
    ++program_->contexts;
  }
  ~ExecutionContext() noexcept override {
    Locked locked(runtime_lock());
    if (use_->queued > 0) {
      fail("TensorRT: an execution context was destroyed while its work is under way");
    }
    use_->alive = false;
    --program_->contexts;
  }

  void setDeviceMemoryV2(void* memory, std::int64_t size) noexcept override {
    memory_ = memory;
    memory_bytes_ = size;
  }
  std::int32_t getOptimizationProfile() const noexcept override { return profile_; }

  bool setOptimizationProfileAsync(std::int32_t profileIndex, cudaStream_t) noexcept override {
    const auto count = static_cast<std::int32_t>(program_->graph->profiles.size());
    if (profileIndex < 0 || profileIndex >= count) {
      program_->complain("setOptimizationProfileAsync: there is no profile " +
                         std::to_string(profileIndex));
      return false;
    }
    profile_ = profileIndex;
    shapes_.clear();
    settled_ = false;
    return true;
  }

  bool setInputShape(char const* tensorName, Dims const& dims) noexcept override {
    const Graph& graph = *program_->graph;
    const int index = graph.find(tensorName);
    if (index < 0 || std::ranges::count(graph.inputs, index) == 0) {
      program_->complain(std::string("setInputShape: there is no input ") + tensorName);
      return false;
    }
    const Tensor& tensor = program_->tensor(index);
    bool fits = dims.nbDims == tensor.dims.nbDims;
    if (fits && !graph.profiles.empty()) {
      const Profile& profile = graph.profiles[static_cast<std::size_t>(profile_)];
      const auto& least = profile.shapes[static_cast<int>(OptProfileSelector::kMIN)];
      const auto& most = profile.shapes[static_cast<int>(OptProfileSelector::kMAX)];
      for (int d = 0; d < dims.nbDims; ++d) {
        if (tensor.dims.d[d] != -1) {
          fits = fits && dims.d[d] == tensor.dims.d[d];
        } else {
          fits = fits && dims.d[d] >= least.at(tensor.name).d[d] &&
                 dims.d[d] <= most.at(tensor.name).d[d];
        }
      }
    }
    if (!fits) {
      program_->complain("setInputShape: the shape " + describe(dims) + " of " + tensorName +
                         " lies outside of profile " + std::to_string(profile_));
      return false;
    }
    shapes_[index] = dims;
    settled_ = false;
    return true;
  }

  Dims getTensorShape(char const* tensorName) const noexcept override {
    const int index = program_->graph->find(tensorName);
    std::vector<Form> forms;
    if (index < 0 || !resolve_shapes(forms).empty()) return {-1, {}};
    return forms[static_cast<std::size_t>(index)].dims;
  }

  bool setTensorAddress(char const* tensorName, void* data) noexcept override {
    const int index = program_->graph->find(tensorName);
    if (index < 0) {
      program_->complain(std::string("setTensorAddress: there is no tensor ") + tensorName);
      return false;
    }
    if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
      program_->complain(std::string("setTensorAddress: ") + tensorName +
                         " is not aligned to 256 bytes");
      return false;
    }
    addresses_[index] = data;
    return true;
  }

  bool enqueueV3(cudaStream_t stream) noexcept override {
    Locked locked(runtime_lock());
    const std::string why = enqueue_work(stream);
    if (!why.empty()) program_->complain("enqueueV3: " + why);
    return why.empty();
  }

 private:
  // The forms of all tensors for the shapes that were set; "" or the reason.
  std::string resolve_shapes(std::vector<Form>& forms) const {
    const Graph& graph = *program_->graph;
    forms.clear();
    for (const Tensor& tensor : graph.tensors) forms.push_back({tensor.type, tensor.dims});
    std::map<std::string, std::int64_t> named;
    for (int input : graph.inputs) {
      Form& form = forms[static_cast<std::size_t>(input)];
      const Tensor& tensor = program_->tensor(input);
      const auto found = shapes_.find(input);
      if (found != shapes_.end()) form.dims = found->second;
      if (volume(form.dims) < 0) return "the shape of the input " + tensor.name + " is not set";
      for (std::size_t d = 0; d < tensor.dimension_names.size(); ++d) {
        if (tensor.dimension_names[d].empty()) continue;
        const auto [other, fresh] = named.emplace(tensor.dimension_names[d], form.dims.d[d]);
        if (!fresh && other->second != form.dims.d[d]) {
          return "the dimensions named " + tensor.dimension_names[d] + " differ";
        }
      }
    }
    return infer_all(graph, forms);
  }

  std::string enqueue_work(cudaStream_t stream) {
    const Graph& graph = *program_->graph;
    cudaStream_t target = resolve(stream);
    if (target == nullptr) return "the stream is not alive";
    std::vector<Form> forms;
    if (std::string why = resolve_shapes(forms); !why.empty()) return why;

    Operation operation;
    operation.name = "TensorRT enqueueV3";
    std::map<int, void*> addresses;
    for (const std::vector<int>* side : {&graph.inputs, &graph.outputs}) {
      for (int index : *side) {
        const auto found = addresses_.find(index);
        if (found == addresses_.end() || found->second == nullptr) {
          return "the address of " + program_->tensor(index).name + " is not set";
        }
        const Form& form = forms[static_cast<std::size_t>(index)];
        addresses[index] = found->second;
        operation.pointers.push_back(
            {found->second, static_cast<std::size_t>(volume(form.dims)) * bytes_of(form.type),
             program_->tensor(index).name});
      }
    }

    const auto needed = static_cast<std::size_t>(
        program_->memory[graph.profiles.empty() ? 0 : static_cast<std::size_t>(profile_)]);
    void* const memory = memory_;
    if (!own_memory_) {
      if (memory_bytes_ < static_cast<std::int64_t>(needed)) {
        return "the memory for activations has " + std::to_string(memory_bytes_) +
               " bytes, and the profile needs " + std::to_string(needed);
      }
      operation.pointers.push_back({memory, needed, "the memory for activations"});
      const auto [user, fresh] = memory_users().emplace(memory, target);
      if (!fresh && user->second != target) {
        fail("TensorRT: contexts on two streams share one memory for activations");
      }
    }

    if (is_capturing(target)) {
      if (!settled_ || settings().refuse_tensorrt_capture) {
        invalidate_capture(target);
        return settled_ ? "the capture is refused, as a switch of the emulator says"
                        : "the first run after a change of shapes cannot be captured";
      }
    } else {
      ++use_->queued;
    }
    const bool counted = !is_capturing(target);
    settled_ = true;
    ++settings().counters.library_calls;
    operation.run = [program = program_, use = use_, counted, forms, addresses,
                     memory = own_memory_ ? nullptr : memory, needed] {
      if (!use->alive) fail("TensorRT: the context of a captured graph was destroyed");
      if (counted) --use->queued;
      if (memory != nullptr) std::memset(memory, 0xFF, needed);
      std::map<int, Value> inputs;
      for (int input : program->graph->inputs) {
        inputs[input] = read_value(forms[static_cast<std::size_t>(input)], addresses.at(input));
      }
      write_value(run_graph(*program->graph, inputs, program->constants),
                  addresses.at(program->graph->outputs[0]));
    };
    const cudaError_t queued = enqueue(target, std::move(operation));
    return queued == cudaSuccess ? "" : cudaGetErrorString(queued);
  }

  ProgramPtr program_;
  bool own_memory_;
  std::shared_ptr<Use> use_;
  std::int32_t profile_ = 0;
  std::map<int, Dims> shapes_;
  std::map<int, void*> addresses_;
  void* memory_ = nullptr;
  std::int64_t memory_bytes_ = 0;
  bool settled_ = false;  // ran since the shapes last changed
};

class CudaEngine final : public ICudaEngine {
 public:
  explicit CudaEngine(ProgramPtr program) : program_(std::move(program)) {}
  ~CudaEngine() noexcept override {
    if (program_->contexts > 0) fail("TensorRT: an engine was destroyed before its contexts");
  }

  Dims getTensorShape(char const* tensorName) const noexcept override {
    const int index = program_->graph->find(tensorName);
    return index < 0 ? Dims{-1, {}} : program_->tensor(index).dims;
  }
  DataType getTensorDataType(char const* tensorName) const noexcept override {
    const int index = program_->graph->find(tensorName);
    return index < 0 ? DataType::kFLOAT : program_->tensor(index).type;
  }
  TensorIOMode getTensorIOMode(char const* tensorName) const noexcept override {
    const int index = program_->graph->find(tensorName);
    if (index < 0) return TensorIOMode::kNONE;
    return std::ranges::count(program_->graph->inputs, index) > 0 ? TensorIOMode::kINPUT
                                                                  : TensorIOMode::kOUTPUT;
  }
  IExecutionContext* createExecutionContext(
      ExecutionContextAllocationStrategy strategy) noexcept override {
    return new ExecutionContext(program_,
                                strategy != ExecutionContextAllocationStrategy::kUSER_MANAGED);
  }
  std::int64_t getDeviceMemorySizeV2() const noexcept override {
    return *std::ranges::max_element(program_->memory);
  }
  std::int32_t getNbOptimizationProfiles() const noexcept override {
    return static_cast<std::int32_t>(program_->graph->profiles.size());
  }
  Dims getProfileShape(char const* tensorName, std::int32_t profileIndex,
                       OptProfileSelector select) const noexcept override {
    if (profileIndex < 0 || profileIndex >= getNbOptimizationProfiles()) return {-1, {}};
    const auto& shapes = program_->graph->profiles[static_cast<std::size_t>(profileIndex)]
                             .shapes[static_cast<int>(select)];
    const auto found = shapes.find(tensorName);
    return found == shapes.end() ? Dims{-1, {}} : found->second;
  }
  std::int32_t getNbIOTensors() const noexcept override {
    return static_cast<std::int32_t>(program_->graph->inputs.size() +
                                     program_->graph->outputs.size());
  }
  char const* getIOTensorName(std::int32_t index) const noexcept override {
    const auto& inputs = program_->graph->inputs;
    const auto at = static_cast<std::size_t>(index);
    if (index < 0 || index >= getNbIOTensors()) return nullptr;
    const int tensor =
        at < inputs.size() ? inputs[at] : program_->graph->outputs[at - inputs.size()];
    return program_->tensor(tensor).name.c_str();
  }

 private:
  ProgramPtr program_;
};

class Runtime final : public IRuntime {
 public:
  explicit Runtime(ILogger& log) : log_(log) {}

  ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept override {
    std::string why;
    auto graph = read_engine(blob, size, why);
    if (graph == nullptr) {
      log_.log(ILogger::Severity::kERROR, ("deserializeCudaEngine: " + why).c_str());
      return nullptr;
    }
    auto program = std::make_shared<Program>();
    program->log = &log_;
    for (const Layer& layer : graph->layers) {
      if (layer.kind != Kind::constant) continue;
      const Tensor& tensor = graph->tensors[static_cast<std::size_t>(layer.output)];
      program->constants[layer.output] =
          std::make_shared<Value>(read_value({tensor.type, tensor.dims}, layer.weights.data()));
    }
    for (const Profile& profile : graph->profiles) {
      program->memory.push_back(activation_bytes(*graph, &profile));
    }
    if (graph->profiles.empty()) program->memory.push_back(activation_bytes(*graph, nullptr));
    program->graph = std::move(graph);
    return new CudaEngine(std::move(program));
  }

 private:
  ILogger& log_;
};

}  // namespace
}  // namespace emulator::tensorrt

namespace nvinfer1 {

IRuntime* createInferRuntime(ILogger& logger) noexcept {
  return new emulator::tensorrt::Runtime(logger);
}

}  // namespace nvinfer1

extern "C" std::int32_t getInferLibVersion() noexcept {
  return emulator::settings().tensorrt_version;
}
