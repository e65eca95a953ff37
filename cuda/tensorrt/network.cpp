#include "cuda/tensorrt/network.h"

#include "host/core/error.h"

#if CFAA_HAS_TENSORRT

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "cuda/tensorrt/cache.h"
#include "cuda/tensorrt/engine.h"
#include "cuda/tensorrt/layers.h"
#include "cuda/tensorrt/library.h"
#include "host/core/log.h"
#include "host/core/stopwatch.h"

namespace cfaa::cuda {
namespace {

using nvinfer1::Dims;

// Tokens of a batch where the caller does not say: BERT-large at 128 x 128 fills an A100, and all
// rows of a bucket are always computed, which an emulated device is too slow for.
int64_t suitable_batch_tokens(DeviceRuntime& device) {
  return device.watches_memory() ? 512 : 16384;
}

std::string describe(const Weights& weights) {
  return fmt::format("{}[{}]{}", weights.name, fmt::join(weights.shape, ","),
                     name_of(weights.dtype));
}

class TensorRTBuilder final : public NetworkBuilder {
 public:
  TensorRTBuilder(Context& context, const NetworkOptions& options)
      : context_(context), options_(options), log_(std::make_shared<TensorRTLog>()) {
    if (options.max_length < 1) throw Error("the encoder's maximum length must be at least 1");
    if (options_.batch_tokens <= 0) {
      options_.batch_tokens = suitable_batch_tokens(context.runtime());
    }
  }

  Node token_ids() override {
    return record("ids", 2, 0,
                  [](Values&, TensorRTLayers& layers) -> Tensor& { return layers.ids(); });
  }

  Node embed(Node ids, const Weights& table) override {
    check_shape(table, 2);
    return record(fmt::format("embed {} {}", ids.index, describe(table)), 3, table.shape[1],
                  [=](Values& values, TensorRTLayers& layers) -> Tensor& {
                    return layers.embed(*values[at(ids)], table);
                  });
  }

  Node embed_positions(const Weights& table, int64_t first) override {
    check_shape(table, 2);
    if (first < 0 || first + options_.max_length > table.shape[0]) {
      throw Error(
          fmt::format("the tensor {} has {} positions, of which {} are needed from {} on; "
                      "use a smaller --max-length",
                      table.name, table.shape[0], options_.max_length, first));
    }
    return record(fmt::format("positions {} {}", describe(table), first), 3, table.shape[1],
                  [=](Values&, TensorRTLayers& layers) -> Tensor& {
                    return layers.embed_positions(table, first);
                  });
  }

  Node row(const Weights& table, int64_t index) override {
    check_shape(table, 2);
    CFAA_ASSERT(index >= 0 && index < table.shape[0]);
    return record(
        fmt::format("row {} {}", describe(table), index), 3, table.shape[1],
        [=](Values&, TensorRTLayers& layers) -> Tensor& { return layers.row(table, index); });
  }

  Node add(Node a, Node b) override {
    CFAA_ASSERT(known(a).width == known(b).width && known(a).rank == known(b).rank);
    return record(fmt::format("add {} {}", a.index, b.index), known(a).rank, known(a).width,
                  [=](Values& values, TensorRTLayers& layers) -> Tensor& {
                    return layers.add(*values[at(a)], *values[at(b)]);
                  });
  }

  Node layer_norm(Node x, const Weights& gamma, const Weights& beta, double epsilon) override {
    CFAA_ASSERT(known(x).rank == 3);
    check_shape(gamma, 1, known(x).width);
    check_shape(beta, 1, known(x).width);
    return record(
        fmt::format("norm {} {} {} {:a}", x.index, describe(gamma), describe(beta), epsilon), 3,
        known(x).width, [=](Values& values, TensorRTLayers& layers) -> Tensor& {
          return layers.layer_norm(*values[at(x)], gamma, beta, epsilon);
        });
  }

  Node linear(Node x, const Weights& weight, const Weights& bias) override {
    check_shape(weight, 2, known(x).width);
    check_shape(bias, 1, weight.shape[0]);
    return record(fmt::format("linear {} {} {}", x.index, describe(weight), describe(bias)),
                  known(x).rank, weight.shape[0],
                  [=](Values& values, TensorRTLayers& layers) -> Tensor& {
                    return layers.linear(*values[at(x)], weight, bias);
                  });
  }

  Node activate(Node x, Nonlinearity kind) override {
    return record(fmt::format("activate {} {}", x.index, static_cast<int>(kind)), known(x).rank,
                  known(x).width, [=](Values& values, TensorRTLayers& layers) -> Tensor& {
                    return layers.activate(*values[at(x)], kind);
                  });
  }

  Node attention(Node q, Node k, Node v, int64_t heads) override {
    CFAA_ASSERT(known(q).rank == 3 && heads >= 1 && known(q).width % heads == 0);
    CFAA_ASSERT(known(k).width == known(q).width && known(v).width == known(q).width);
    return record(fmt::format("attention {} {} {} {}", q.index, k.index, v.index, heads), 3,
                  known(q).width, [=](Values& values, TensorRTLayers& layers) -> Tensor& {
                    return layers.attention(*values[at(q)], *values[at(k)], *values[at(v)], heads);
                  });
  }

  Node pool(Node x, Pooling kind) override {
    CFAA_ASSERT(known(x).rank == 3);
    return record(fmt::format("pool {} {}", x.index, static_cast<int>(kind)), 2, known(x).width,
                  [=](Values& values, TensorRTLayers& layers) -> Tensor& {
                    return layers.pool(*values[at(x)], kind);
                  });
  }

  Node unit_length(Node x) override {
    CFAA_ASSERT(known(x).rank == 2);
    return record(fmt::format("unit {}", x.index), 2, known(x).width,
                  [=](Values& values, TensorRTLayers& layers) -> Tensor& {
                    return layers.unit_length(*values[at(x)]);
                  });
  }

  std::unique_ptr<NetworkEngine> build(Node output) override;

 private:
  using Tensor = nvinfer1::ITensor;
  using Values = std::vector<Tensor*>;
  using Emit = std::function<Tensor&(Values&, TensorRTLayers&)>;

  struct Operation {
    std::string text;  // what it is and what it depends on: part of the engine's identity
    int rank;
    int64_t width;  // of the last dimension; 0 for token ids
    Emit emit;
  };

  static std::size_t at(Node node) { return static_cast<std::size_t>(node.index); }

  const Operation& known(Node node) const {
    CFAA_ASSERT(node.index >= 0 && at(node) < operations_.size());
    return operations_[at(node)];
  }

  Node record(std::string text, int rank, int64_t width, Emit emit) {
    operations_.push_back({std::move(text), rank, width, std::move(emit)});
    return {static_cast<int>(operations_.size()) - 1};
  }

  // The last dimension is `last` where that is not 0, and the bytes are all there.
  static void check_shape(const Weights& weights, std::size_t rank, int64_t last = 0) {
    int64_t count = 1;
    for (const int64_t extent : weights.shape) count *= extent;
    if (weights.shape.size() != rank || (last != 0 && weights.shape.back() != last) ||
        !is_float(weights.dtype) ||
        weights.bytes.size() != static_cast<std::size_t>(count) * size_of(weights.dtype)) {
      throw Error(
          fmt::format("the tensor {} does not fit: a float tensor of {} dimension{}{} is "
                      "needed; check the model's config.json against its weights",
                      describe(weights), rank, rank == 1 ? "" : "s",
                      last == 0 ? "" : fmt::format(", the last of {},", last)));
    }
  }

  EngineIdentity identity(Node output);
  // Null where TensorRT refuses to build it with lengths; it must with a mask.
  std::unique_ptr<nvinfer1::IHostMemory> build_engine(Node output, const EngineCache& cache,
                                                      const EngineIdentity& identity,
                                                      KeyPadding padding);
  // With a mask where TensorRT builds none with the texts' lengths.
  std::unique_ptr<nvinfer1::IHostMemory> build_some_engine(Node output, const EngineCache& cache,
                                                           const EngineIdentity& identity);
  void add_profiles(nvinfer1::IBuilder& builder, nvinfer1::INetworkDefinition& network,
                    nvinfer1::IBuilderConfig& config, const std::vector<LengthBucket>& buckets);

  Context& context_;
  NetworkOptions options_;
  std::shared_ptr<TensorRTLog> log_;
  std::vector<Operation> operations_;
};

EngineIdentity TensorRTBuilder::identity(Node output) {
  std::string graph;
  for (const Operation& operation : operations_) graph += operation.text + "\n";
  return {.content = options_.content_hash,
          .graph = graph + fmt::format("output {}\n", output.index),
          .tensorrt = tensorrt_version(),
          .gpu = gpu_of(context_),
          .precision = options_.precision,
          .buckets = length_buckets(options_.max_length, options_.batch_tokens)};
}

void TensorRTBuilder::add_profiles(nvinfer1::IBuilder& builder,
                                   nvinfer1::INetworkDefinition& network,
                                   nvinfer1::IBuilderConfig& config,
                                   const std::vector<LengthBucket>& buckets) {
  using nvinfer1::OptProfileSelector;
  for (const LengthBucket& bucket : buckets) {
    nvinfer1::IOptimizationProfile& profile =
        required(builder.createOptimizationProfile(), *log_, "make a profile");
    // One shape: batches of a bucket always have all its rows.
    const auto fix = [&](const char* name, const Dims& shape) {
      for (const OptProfileSelector select :
           {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX}) {
        require(profile.setDimensions(name, select, shape), *log_, "set a profile's shape");
      }
    };
    for (int i = 0; i < network.getNbInputs(); ++i) {
      const std::string name = network.getInput(i)->getName();
      fix(name.c_str(), name == kIds       ? Dims{2, {bucket.rows, bucket.length}}
                        : name == kLengths ? Dims{1, {bucket.rows}}
                                           : Dims{1, {bucket.length}});
    }
    require(config.addOptimizationProfile(&profile) >= 0, *log_, "add a profile");
  }
}

std::unique_ptr<nvinfer1::IHostMemory> TensorRTBuilder::build_engine(Node output,
                                                                     const EngineCache& cache,
                                                                     const EngineIdentity& identity,
                                                                     KeyPadding padding) {
  std::unique_ptr<nvinfer1::ITimingCache> timings;  // outlives the builder, as TensorRT asks
  auto builder = owned(nvinfer1::createInferBuilder(*log_), *log_, "start its builder");
#if NV_TENSORRT_MAJOR >= 11
  const uint32_t flags = 0;  // every network is strongly typed
#else
  const uint32_t flags =
      1u << static_cast<int>(nvinfer1::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
#endif
  auto network = owned(builder->createNetworkV2(flags), *log_, "make a network");
  TensorRTLayers layers(*network, *log_, options_.precision, options_.max_length, padding);
  Values values;
  for (const Operation& operation : operations_) {
    values.push_back(&operation.emit(values, layers));
  }
  layers.mark_output(*values[at(output)]);

  auto config = owned(builder->createBuilderConfig(), *log_, "make a configuration");
  if (options_.precision == NetworkPrecision::tf32) {
    config->setFlag(nvinfer1::BuilderFlag::kTF32);
  } else {
    config->clearFlag(nvinfer1::BuilderFlag::kTF32);  // on unless told otherwise
  }
  add_profiles(*builder, *network, *config, identity.buckets);

  // Timings of another version or GPU are another file's; should TensorRT refuse them all the same,
  // it measures again.
  const std::optional<CachedBytes> kept = cache.load_timings();
  if (kept) {
    timings.reset(config->createTimingCache(kept->payload().data(), kept->payload().size()));
    if (timings != nullptr && !config->setTimingCache(*timings, false)) timings.reset();
  }
  if (timings == nullptr) {
    timings = owned(config->createTimingCache(nullptr, 0), *log_, "make a timing cache");
    require(config->setTimingCache(*timings, false), *log_, "use a timing cache");
  }

  std::unique_ptr<nvinfer1::IHostMemory> engine(builder->buildSerializedNetwork(*network, *config));
  if (engine == nullptr && padding == KeyPadding::mask) {
    throw_refused(*log_, "build the encoder's engine");
  }
  const std::unique_ptr<nvinfer1::IHostMemory> measured(config->getTimingCache()->serialize());
  if (measured != nullptr) {
    cache.keep_timings({static_cast<const std::byte*>(measured->data()), measured->size()});
  }
  return engine;
}

std::unique_ptr<nvinfer1::IHostMemory> TensorRTBuilder::build_some_engine(
    Node output, const EngineCache& cache, const EngineIdentity& identity) {
  auto engine = build_engine(output, cache, identity, kKeyPadding);
  if (engine != nullptr) return engine;
  log_info(fmt::format(
      "attention is built with a mask, which takes more memory than the texts' lengths: {}",
      log_->take_error()));
  return build_engine(output, cache, identity, KeyPadding::mask);
}

std::unique_ptr<NetworkEngine> TensorRTBuilder::build(Node output) {
  CFAA_ASSERT(known(output).rank == 2 && known(output).width > 0);
  const EngineIdentity identity = this->identity(output);
  const EngineCache cache(options_.cache_directory, identity);
  if (const std::optional<CachedBytes> kept = cache.load_engine()) {
    if (auto engine = load_tensorrt_engine(context_, log_, kept->payload(), identity)) {
      log_info("the encoder's engine was found in " + kept->path());
      return engine;
    }
    log_info(kept->path() + " is not accepted by TensorRT (" + log_->take_error() +
             "); it is made anew");
  }

  log_info(fmt::format("TensorRT {} builds the encoder's engine for {} in {}: this takes minutes",
                       identity.tensorrt, identity.gpu, name_of(identity.precision)));
  const Stopwatch watch;
  const std::unique_ptr<nvinfer1::IHostMemory> built = build_some_engine(output, cache, identity);
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(built->data()),
                                         built->size());
  const double seconds = watch.seconds();
  const std::string path = cache.keep_engine(bytes);
  log_info(fmt::format("the encoder's engine took {:.1f} s to build{}", seconds,
                       path.empty() ? "" : " and is kept in " + path));
  auto engine = load_tensorrt_engine(context_, log_, bytes, identity);
  if (engine == nullptr) throw_refused(*log_, "load the engine that it built");
  return engine;
}

}  // namespace

std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                     const NetworkOptions& options) {
  return std::make_unique<TensorRTBuilder>(context, options);
}

}  // namespace cfaa::cuda

#else

namespace cfaa::cuda {

std::unique_ptr<NetworkBuilder> make_network_builder(Context&, const NetworkOptions&) {
  throw Error(
      "this build has no TensorRT, which runs the encoder on a GPU; install TensorRT 11 (or 10.15 "
      "and later), configure again with -DTensorRT_ROOT=<its folder> and build, or use --device "
      "cpu");
}

}  // namespace cfaa::cuda

#endif
