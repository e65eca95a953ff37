// TensorRT's builder: networks, profiles, configurations, engines as bytes.

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

#include "NvInfer.h"
#include "settings.h"
#include "tensorrt_graph.h"
#include "tensorrt_memory.h"

namespace emulator::tensorrt {
namespace {

using namespace nvinfer1;
using Log = ILogger;

void complain(Log& log, const std::string& message) {
  log.log(Log::Severity::kERROR, message.c_str());
}

class Network;

class TensorHandle final : public ITensor {
 public:
  TensorHandle(Network& network, int index) : network_(network), index_(index) {}

  void setName(char const* name) noexcept override { tensor().name = name; }
  char const* getName() const noexcept override { return tensor().name.c_str(); }
  Dims getDimensions() const noexcept override { return tensor().dims; }
  DataType getType() const noexcept override { return tensor().type; }
  bool isNetworkInput() const noexcept override;
  bool isNetworkOutput() const noexcept override;
  void setDimensionName(std::int32_t index, char const* name) noexcept override {
    auto& names = tensor().dimension_names;
    names.resize(static_cast<std::size_t>(tensor().dims.nbDims));
    names.at(static_cast<std::size_t>(index)) = name;
  }

  int index() const { return index_; }
  Network& network() const { return network_; }

 private:
  Tensor& tensor() const;

  Network& network_;
  int index_;
};

int index_of(ITensor& tensor) {
  return static_cast<TensorHandle&>(tensor).index();
}

// What every kind of layer has.
template <class Interface>
class LayerHandle : public Interface {
 public:
  LayerHandle(Network& network, std::size_t index) : network_(network), index_(index) {}

  void setName(char const* name) noexcept override { layer().name = name; }
  char const* getName() const noexcept override { return layer().name.c_str(); }
  std::int32_t getNbInputs() const noexcept override {
    return static_cast<std::int32_t>(layer().inputs.size());
  }
  std::int32_t getNbOutputs() const noexcept override { return 1; }
  ITensor* getOutput(std::int32_t index) const noexcept override;

 protected:
  Layer& layer() const;
  void changed();

  Network& network_;
  std::size_t index_;
};

class ShuffleHandle final : public LayerHandle<IShuffleLayer> {
 public:
  using LayerHandle::LayerHandle;
  void setFirstTranspose(Permutation permutation) noexcept override { transpose(0, permutation); }
  void setSecondTranspose(Permutation permutation) noexcept override { transpose(1, permutation); }
  void setReshapeDimensions(Dims const& dimensions) noexcept override {
    layer().reshape = dimensions;
    changed();
  }

 private:
  void transpose(int which, const Permutation& permutation) {
    layer().transposes[which] = true;
    layer().permutations[which] = permutation;
    changed();
  }
};

class NormalizationHandle final : public LayerHandle<INormalizationLayer> {
 public:
  using LayerHandle::LayerHandle;
  void setEpsilon(float eps) noexcept override { layer().epsilon = eps; }
  float getEpsilon() const noexcept override { return layer().epsilon; }
};

class AttentionHandle final : public IAttention {
 public:
  AttentionHandle(Network& network, std::size_t index) : network_(network), index_(index) {}
  bool setMask(ITensor& mask) noexcept override;
  bool setKeyValueLengths(ITensor* lengths) noexcept override;
  bool setDecomposable(bool decomposable) noexcept override;
  bool getDecomposable() const noexcept override;
  bool setName(char const* name) noexcept override;
  ITensor* getOutput(std::int32_t index) const noexcept override;

 private:
  Network& network_;
  std::size_t index_;
};

class Network final : public INetworkDefinition {
 public:
  explicit Network(Log& log) : log_(log) {}

  ITensor* addInput(char const* name, DataType type, Dims const& dimensions) noexcept override {
    if (graph_.find(name) >= 0) {
      complain(log_, std::string("addInput: there is an input ") + name + " already");
      return nullptr;
    }
    const int index = new_tensor(name, {type, dimensions});
    graph_.inputs.push_back(index);
    return &handle(index);
  }

  void markOutput(ITensor& tensor) noexcept override {
    const int index = index_of(tensor);
    if (tensor.isNetworkInput()) return complain(log_, "markOutput: an input cannot be an output");
    graph_.outputs.push_back(index);
  }

  std::int32_t getNbLayers() const noexcept override {
    return static_cast<std::int32_t>(graph_.layers.size());
  }
  std::int32_t getNbInputs() const noexcept override {
    return static_cast<std::int32_t>(graph_.inputs.size());
  }
  ITensor* getInput(std::int32_t index) const noexcept override {
    if (index < 0 || index >= getNbInputs()) return nullptr;
    return &handle(graph_.inputs[static_cast<std::size_t>(index)]);
  }

  IActivationLayer* addActivation(ITensor& input, ActivationType type) noexcept override {
    return add<LayerHandle<IActivationLayer>>(Kind::activation, "Activation", {&input},
                                              static_cast<int>(type));
  }
  IElementWiseLayer* addElementWise(ITensor& input1, ITensor& input2,
                                    ElementWiseOperation op) noexcept override {
    return add<LayerHandle<IElementWiseLayer>>(Kind::elementwise, "ElementWise", {&input1, &input2},
                                               static_cast<int>(op));
  }
  IUnaryLayer* addUnary(ITensor& input, UnaryOperation operation) noexcept override {
    return add<LayerHandle<IUnaryLayer>>(Kind::unary, "Unary", {&input},
                                         static_cast<int>(operation));
  }
  IShuffleLayer* addShuffle(ITensor& input) noexcept override {
    return add<ShuffleHandle>(Kind::shuffle, "Shuffle", {&input});
  }
  IReduceLayer* addReduce(ITensor& input, ReduceOperation operation, std::uint32_t reduceAxes,
                          bool keepDimensions) noexcept override {
    return add<LayerHandle<IReduceLayer>>(Kind::reduce, "Reduce", {&input},
                                          static_cast<int>(operation),
                                          static_cast<std::int32_t>(reduceAxes), keepDimensions);
  }
  IGatherLayer* addGather(ITensor& data, ITensor& indices, std::int32_t axis) noexcept override {
    return add<LayerHandle<IGatherLayer>>(Kind::gather, "Gather", {&data, &indices}, axis);
  }
  IMatrixMultiplyLayer* addMatrixMultiply(ITensor& input0, MatrixOperation op0, ITensor& input1,
                                          MatrixOperation op1) noexcept override {
    return add<LayerHandle<IMatrixMultiplyLayer>>(Kind::matrix_multiply, "MatrixMultiply",
                                                  {&input0, &input1}, static_cast<int>(op0),
                                                  static_cast<int>(op1));
  }
  IConstantLayer* addConstant(Dims const& dimensions, Weights weights) noexcept override;
  ICastLayer* addCast(ITensor& input, DataType toType) noexcept override {
    return add<LayerHandle<ICastLayer>>(Kind::cast, "Cast", {&input}, static_cast<int>(toType));
  }
  ISelectLayer* addSelect(ITensor& condition, ITensor& thenInput,
                          ITensor& elseInput) noexcept override {
    return add<LayerHandle<ISelectLayer>>(Kind::select, "Select",
                                          {&condition, &thenInput, &elseInput});
  }
  INormalizationLayer* addNormalizationV2(ITensor& input, ITensor& scale, ITensor& bias,
                                          std::uint32_t axesMask) noexcept override {
    return add<NormalizationHandle>(Kind::normalization, "Normalization", {&input, &scale, &bias},
                                    0, static_cast<std::int32_t>(axesMask));
  }
  IAttention* addAttentionV2(ITensor& query, ITensor& key, ITensor& value,
                             AttentionNormalizationOp normOp,
                             CausalMaskKind causalKind) noexcept override {
    if (normOp != AttentionNormalizationOp::kSOFTMAX || causalKind != CausalMaskKind::kNONE) {
      complain(log_, "addAttentionV2: the emulated device has softmax without a causal mask only");
      return nullptr;
    }
    return add<AttentionHandle>(Kind::attention, "Attention", {&query, &key, &value});
  }

  // The graph with its weights in it, or the reason why there is none.
  std::string finish(Graph& out) const;

  Graph& graph() { return graph_; }
  TensorHandle& handle(int index) const { return *handles_[static_cast<std::size_t>(index)]; }

  // The form of one layer's output, after it was changed.
  std::string refresh(std::size_t index) {
    const Layer& layer = graph_.layers[index];
    std::vector<Form> in;
    for (int input : layer.inputs) {
      const Tensor& tensor = graph_.tensors[static_cast<std::size_t>(input)];
      in.push_back({tensor.type, tensor.dims});
    }
    Tensor& output = graph_.tensors[static_cast<std::size_t>(layer.output)];
    Form form{output.type, output.dims};
    const std::string why = infer(layer, in, form);
    if (why.empty()) {
      output.type = form.type;
      output.dims = form.dims;
    } else {
      complain(log_, "layer " + layer.name + ": " + why);
    }
    return why;
  }

 private:
  template <class Handle>
  Handle* add(Kind kind, const char* name, std::vector<ITensor*> inputs, std::int32_t operation = 0,
              std::int32_t operation2 = 0, bool flag = false) {
    Layer layer;
    layer.kind = kind;
    layer.name = std::string(name) + " " + std::to_string(graph_.layers.size());
    for (ITensor* input : inputs) {
      if (&static_cast<TensorHandle&>(*input).network() != this) {
        complain(log_, "layer " + layer.name + ": an input belongs to another network");
        return nullptr;
      }
      layer.inputs.push_back(index_of(*input));
    }
    layer.operation[0] = operation;
    layer.operation[1] = operation2;
    layer.flag = flag;
    layer.output = new_tensor(layer.name + " output", {});
    graph_.layers.push_back(std::move(layer));
    if (!refresh(graph_.layers.size() - 1).empty()) {
      graph_.layers.pop_back();
      return nullptr;
    }
    auto made = std::make_shared<Handle>(*this, graph_.layers.size() - 1);
    layers_.push_back(made);
    return made.get();
  }

  int new_tensor(std::string name, const Form& form) {
    graph_.tensors.push_back({std::move(name), form.type, form.dims, {}});
    handles_.push_back(
        std::make_unique<TensorHandle>(*this, static_cast<int>(graph_.tensors.size()) - 1));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  struct Held {
    Weights weights;
    std::uint64_t checksum;
  };

  Log& log_;
  Graph graph_;
  std::deque<std::unique_ptr<TensorHandle>> handles_;
  std::vector<std::shared_ptr<void>> layers_;
  std::map<std::size_t, Held> weights_;  // of constants, by layer
};

bool TensorHandle::isNetworkInput() const noexcept {
  return std::ranges::count(network_.graph().inputs, index_) > 0;
}
bool TensorHandle::isNetworkOutput() const noexcept {
  return std::ranges::count(network_.graph().outputs, index_) > 0;
}
Tensor& TensorHandle::tensor() const {
  return network_.graph().tensors[static_cast<std::size_t>(index_)];
}

template <class Interface>
ITensor* LayerHandle<Interface>::getOutput(std::int32_t index) const noexcept {
  return index == 0 ? &network_.handle(layer().output) : nullptr;
}
template <class Interface>
Layer& LayerHandle<Interface>::layer() const {
  return network_.graph().layers[index_];
}
template <class Interface>
void LayerHandle<Interface>::changed() {
  network_.refresh(index_);
}

bool AttentionHandle::setMask(ITensor& mask) noexcept {
  Layer& layer = network_.graph().layers[index_];
  layer.inputs.resize(3);
  layer.inputs.push_back(index_of(mask));
  return network_.refresh(index_).empty();
}
// In the place of a mask; told apart by its type.
bool AttentionHandle::setKeyValueLengths(ITensor* lengths) noexcept {
  Layer& layer = network_.graph().layers[index_];
  layer.inputs.resize(3);
  if (lengths != nullptr) layer.inputs.push_back(index_of(*lengths));
  return network_.refresh(index_).empty();
}
bool AttentionHandle::setDecomposable(bool decomposable) noexcept {
  network_.graph().layers[index_].flag = decomposable;
  return true;
}
bool AttentionHandle::getDecomposable() const noexcept {
  return network_.graph().layers[index_].flag;
}
bool AttentionHandle::setName(char const* name) noexcept {
  network_.graph().layers[index_].name = name;
  return true;
}
ITensor* AttentionHandle::getOutput(std::int32_t index) const noexcept {
  return index == 0 ? &network_.handle(network_.graph().layers[index_].output) : nullptr;
}

IConstantLayer* Network::addConstant(Dims const& dimensions, Weights weights) noexcept {
  if (weights.values == nullptr || volume(dimensions) != weights.count) {
    complain(log_, "addConstant: " + std::to_string(weights.count) +
                       " weights do not make a constant of shape " + describe(dimensions));
    return nullptr;
  }
  if (weights.type == DataType::kBOOL || weights.type == DataType::kUINT8) {
    complain(log_, "addConstant: constants of this type are not supported");
    return nullptr;
  }
  auto* made = add<LayerHandle<IConstantLayer>>(Kind::constant, "Constant", {});
  Tensor& output = graph_.tensors.back();
  output.type = weights.type;
  output.dims = dimensions;
  weights_[graph_.layers.size() - 1] = {
      weights,
      checksum(weights.values, static_cast<std::size_t>(weights.count) * bytes_of(weights.type))};
  return made;
}

// Layers after those whose outputs they take: a mask may be made after the attention that it is set
// for. False where there is no such order.
bool sort(Graph& graph) {
  std::vector<bool> ready(graph.tensors.size());
  for (int input : graph.inputs) ready[static_cast<std::size_t>(input)] = true;
  std::vector<Layer> waiting = std::move(graph.layers), sorted;
  while (!waiting.empty()) {
    const std::size_t before = waiting.size();
    std::vector<Layer> still;
    for (Layer& layer : waiting) {
      const bool runs = std::ranges::all_of(
          layer.inputs, [&](int input) { return ready[static_cast<std::size_t>(input)]; });
      if (runs) ready[static_cast<std::size_t>(layer.output)] = true;
      (runs ? sorted : still).push_back(std::move(layer));
    }
    waiting = std::move(still);
    if (waiting.size() == before) return false;
  }
  graph.layers = std::move(sorted);
  return true;
}

std::string Network::finish(Graph& out) const {
  out = graph_;
  if (out.inputs.empty()) return "the network has no input";
  if (out.outputs.size() != 1) return "the emulated device builds networks of one output";
  std::set<std::string> names;
  for (const std::vector<int>* side : {&out.inputs, &out.outputs}) {
    for (int tensor : *side) {
      if (!names.insert(out.tensors[static_cast<std::size_t>(tensor)].name).second) {
        return "two inputs or outputs have one name";
      }
    }
  }
  for (const auto& [index, held] : weights_) {
    Layer& layer = out.layers[index];
    const std::size_t size =
        static_cast<std::size_t>(held.weights.count) * bytes_of(held.weights.type);
    if (checksum(held.weights.values, size) != held.checksum) {
      return "the weights of " + layer.name + " changed or were freed before the build";
    }
    layer.weights.resize(size);
    std::memcpy(layer.weights.data(), held.weights.values, size);
  }
  if (!sort(out)) return "a layer depends on its own output";
  std::vector<Form> forms;
  for (const Tensor& tensor : out.tensors) forms.push_back({tensor.type, tensor.dims});
  if (std::string why = infer_all(out, forms); !why.empty()) return why;
  // As if kernels were fused for the small types and the usual sizes only.
  for (const Layer& layer : out.layers) {
    const bool has_lengths =
        layer.inputs.size() > 3 &&
        forms[static_cast<std::size_t>(layer.inputs[3])].type == DataType::kINT32;
    if (layer.kind == Kind::attention && has_lengths && settings().refuse_attention_lengths) {
      return "there is no kernel for " + layer.name + " with lengths, as asked for";
    }
    if (layer.kind != Kind::attention || layer.flag) continue;
    const Form& query = forms[static_cast<std::size_t>(layer.inputs[0])];
    const std::int64_t head = query.dims.d[3];
    if (query.type == DataType::kFLOAT || (head != 32 && head != 64 && head != 128)) {
      return "there is no fused kernel for " + layer.name + ", and it is not decomposable";
    }
  }
  return "";
}

class ProfileHandle final : public IOptimizationProfile {
 public:
  bool setDimensions(char const* inputName, OptProfileSelector select,
                     Dims const& dims) noexcept override {
    for (const auto& shapes : profile.shapes) {
      const auto other = shapes.find(inputName);
      if (other != shapes.end() && other->second.nbDims != dims.nbDims) return false;
    }
    profile.shapes[static_cast<int>(select)][inputName] = dims;
    return true;
  }
  Dims getDimensions(char const* inputName, OptProfileSelector select) const noexcept override {
    const auto& shapes = profile.shapes[static_cast<int>(select)];
    const auto found = shapes.find(inputName);
    return found == shapes.end() ? Dims{-1, {}} : found->second;
  }
  bool isValid() const noexcept override {
    for (const auto& shapes : profile.shapes) {
      for (const auto& [name, dims] : shapes) {
        for (int select = 0; select < 3; ++select) {
          const auto found = profile.shapes[select].find(name);
          if (found == profile.shapes[select].end()) return false;
          if (select == 0) continue;
          for (int d = 0; d < dims.nbDims; ++d) {
            if (profile.shapes[select - 1].at(name).d[d] > found->second.d[d]) return false;
          }
        }
      }
    }
    return true;
  }

  Profile profile;
};

class TimingCache final : public ITimingCache {
 public:
  mutable std::uint64_t builds = 0;  // that it served

  IHostMemory* serialize() const noexcept override {
    const auto* first = reinterpret_cast<const unsigned char*>(&builds);
    return new HostBytes(with_head({first, first + sizeof(builds)}));
  }
};

class Config final : public IBuilderConfig {
 public:
  explicit Config(Log& log) : log_(log) {}

  void clearFlag(BuilderFlag builderFlag) noexcept override { flags_.erase(builderFlag); }
  void setFlag(BuilderFlag builderFlag) noexcept override { flags_.insert(builderFlag); }
  bool getFlag(BuilderFlag builderFlag) const noexcept override {
    return flags_.count(builderFlag) > 0;
  }
  std::int32_t addOptimizationProfile(IOptimizationProfile const* profile) noexcept override {
    if (!profile->isValid()) {
      complain(log_, "addOptimizationProfile: the profile is not valid");
      return -1;
    }
    profiles.push_back(static_cast<const ProfileHandle*>(profile)->profile);
    return static_cast<std::int32_t>(profiles.size()) - 1;
  }
  ITimingCache* createTimingCache(void const* blob, std::size_t size) const noexcept override {
    auto cache = std::make_unique<TimingCache>();
    if (size > 0) {
      std::span<const unsigned char> body;
      const std::string why = check_head(blob, size, body);
      if (!why.empty() || body.size() != sizeof(cache->builds)) {
        complain(log_, "createTimingCache: " + why);
        return nullptr;
      }
      std::memcpy(&cache->builds, body.data(), body.size());
    }
    return cache.release();
  }
  bool setTimingCache(ITimingCache const& cache, bool) noexcept override {
    timings_ = static_cast<const TimingCache*>(&cache);
    return true;
  }
  ITimingCache const* getTimingCache() const noexcept override { return timings_; }
  const TimingCache* timings() const { return timings_; }

  std::vector<Profile> profiles;

 private:
  Log& log_;
  std::set<BuilderFlag> flags_ = {BuilderFlag::kTF32};
  const TimingCache* timings_ = nullptr;
};

// Every input with an unknown dimension has a shape in the profile that fits the network's.
std::string check_profile(const Graph& graph, const Profile& profile) {
  for (int input : graph.inputs) {
    const Tensor& tensor = graph.tensors[static_cast<std::size_t>(input)];
    for (const auto& shapes : profile.shapes) {
      const auto found = shapes.find(tensor.name);
      if (found == shapes.end()) {
        if (volume(tensor.dims) >= 0) continue;
        return "the profile has no shape for the dynamic input " + tensor.name;
      }
      if (found->second.nbDims != tensor.dims.nbDims) return "the profile's rank differs";
      for (int d = 0; d < tensor.dims.nbDims; ++d) {
        if (found->second.d[d] < 0 ||
            (tensor.dims.d[d] != -1 && tensor.dims.d[d] != found->second.d[d])) {
          return "the profile's shape " + describe(found->second) + " does not fit the input " +
                 tensor.name + " of shape " + describe(tensor.dims);
        }
      }
    }
  }
  return "";
}

class Builder final : public IBuilder {
 public:
  explicit Builder(Log& log) : log_(log) {}

  IBuilderConfig* createBuilderConfig() noexcept override { return new Config(log_); }
  INetworkDefinition* createNetworkV2(NetworkDefinitionCreationFlags) noexcept override {
    return new Network(log_);
  }
  IOptimizationProfile* createOptimizationProfile() noexcept override {
    return profiles_.emplace_back(std::make_unique<ProfileHandle>()).get();
  }
  IHostMemory* buildSerializedNetwork(INetworkDefinition& network,
                                      IBuilderConfig& config) noexcept override {
    Locked locked(runtime_lock());
    Graph graph;
    const auto& settings_of_build = static_cast<const Config&>(config);
    std::string why = static_cast<const Network&>(network).finish(graph);
    graph.profiles = settings_of_build.profiles;
    graph.tf32 = config.getFlag(BuilderFlag::kTF32);
    const bool dynamic = std::ranges::any_of(graph.inputs, [&](int input) {
      return volume(graph.tensors[static_cast<std::size_t>(input)].dims) < 0;
    });
    if (why.empty() && dynamic && graph.profiles.empty()) {
      why = "Network has dynamic or shape inputs, but no optimization profile has been defined";
    }
    for (const Profile& profile : graph.profiles) {
      if (why.empty()) why = check_profile(graph, profile);
    }
    if (!why.empty()) {
      complain(log_, "buildSerializedNetwork: " + why);
      return nullptr;
    }
    if (settings_of_build.timings() != nullptr) ++settings_of_build.timings()->builds;
    ++settings().counters.engines_built;
    return new HostBytes(write_engine(graph));
  }

 private:
  Log& log_;
  std::vector<std::unique_ptr<ProfileHandle>> profiles_;
};

}  // namespace
}  // namespace emulator::tensorrt

namespace nvinfer1 {

IBuilder* createInferBuilder(ILogger& logger) noexcept {
  return new emulator::tensorrt::Builder(logger);
}

}  // namespace nvinfer1
