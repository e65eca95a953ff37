// The network builder over OpenVINO's graph API. Every request runs on one thread of its own
// stream, so neither the number of threads nor what else is running can change a bit of a result.
// The inputs are the ids (B, S) and the lengths (B); constants lie over the mapped file.

#include "host/encoder/network.h"

#if CFAA_HAS_OPENVINO

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <openvino/openvino.hpp>
#include <openvino/opsets/opset13.hpp>
#include <utility>

#include "host/core/error.h"

namespace cfaa::cpu {
namespace {

namespace op = ov::opset13;

// Of a batch. Measured best at 512 to 1,024: activations of the feed-forward part stay in the
// second-level cache.
constexpr int64_t kBatchTokens = 1024;

using Value = ov::Output<ov::Node>;

Value integers(const std::vector<int64_t>& values) {
  return op::Constant::create(ov::element::i64, {values.size()}, values);
}

Value integer(int64_t value) {
  return op::Constant::create(ov::element::i64, {}, {value});
}

ov::element::Type element_type(NetworkPrecision precision) {
  if (precision == NetworkPrecision::f16) return ov::element::f16;
  if (precision == NetworkPrecision::bf16) return ov::element::bf16;
  return ov::element::f32;
}

// A message of OpenVINO is a stack of check lines; its last one says what is wrong.
std::string last_line(const std::string& message) {
  const std::size_t end = message.find_last_not_of(" \n");
  if (end == std::string::npos) return "no reason given";
  const std::size_t start = message.find_last_of('\n', end);
  return message.substr(start == std::string::npos ? 0 : start + 1, end - start);
}

class OpenvinoEngine : public NetworkEngine {
 public:
  OpenvinoEngine(ov::CompiledModel model, int64_t width, int64_t vocabulary,
                 const NetworkOptions& options, std::string description)
      : model_(std::move(model)),
        width_(width),
        vocabulary_(vocabulary),
        max_length_(options.max_length),
        batch_tokens_(options.batch_tokens > 0 ? options.batch_tokens : kBatchTokens),
        description_(std::move(description)) {
    // Twice as many as can run: a stream that is done finds its next batch waiting.
    const auto running = model_.get_property(ov::optimal_number_of_infer_requests);
    for (uint32_t i = 0; i < 2 * running; ++i) slots_.push_back({model_.create_infer_request()});
  }

  ~OpenvinoEngine() override {
    for (Slot& slot : slots_) {
      if (slot.busy) slot.request.wait();
    }
  }

  int64_t width() const override { return width_; }
  int slots() const override { return static_cast<int>(slots_.size()); }
  int64_t padded_length(int64_t length) const override { return length; }
  int64_t batch_rows(int64_t padded_length) const override {
    return std::max<int64_t>(1, batch_tokens_ / padded_length);
  }
  std::string description() const override { return description_; }

  void start(int index, const TokenBatch& batch) override {
    Slot& slot = slots_.at(static_cast<std::size_t>(index));
    CFAA_ASSERT(!slot.busy && batch.ids.contiguous() && batch.ids.rows() >= 1);
    CFAA_ASSERT(batch.ids.cols() >= 1 && batch.ids.cols() <= max_length_);
    CFAA_ASSERT(batch.lengths.size() == batch.ids.rows() && batch.lengths.contiguous());
    const auto rows = static_cast<std::size_t>(batch.ids.rows());
    const auto length = static_cast<std::size_t>(batch.ids.cols());
    for (std::size_t i = 0; i < rows * length; ++i) {
      CFAA_ASSERT(batch.ids.data[i] >= 0 && batch.ids.data[i] < vocabulary_);
    }
    for (std::size_t i = 0; i < rows; ++i) {
      CFAA_ASSERT(batch.lengths.data[i] >= 1 && batch.lengths.data[i] <= batch.ids.cols());
    }
    ov::Tensor ids = slot.request.get_input_tensor(0);
    ids.set_shape({rows, length});
    std::copy_n(batch.ids.data, rows * length, ids.data<int32_t>());
    ov::Tensor lengths = slot.request.get_input_tensor(1);
    lengths.set_shape({rows});
    std::copy_n(batch.lengths.data, rows, lengths.data<int32_t>());
    slot.request.start_async();
    slot.busy = true;
    slot.rows = batch.ids.rows();
  }

  MatrixView<const float> finish(int index) override {
    Slot& slot = slots_.at(static_cast<std::size_t>(index));
    CFAA_ASSERT(slot.busy);
    slot.busy = false;
    try {
      slot.request.wait();
    } catch (const ov::Exception& e) {
      throw Error("OpenVINO could not run a batch: " + last_line(e.what()));
    }
    return {slot.request.get_output_tensor(0).data<const float>(), {slot.rows, width_}};
  }

 private:
  struct Slot {
    ov::InferRequest request;
    bool busy = false;
    int64_t rows = 0;
  };

  ov::CompiledModel model_;
  int64_t width_, vocabulary_, max_length_, batch_tokens_;
  std::string description_;
  std::vector<Slot> slots_;
};

class OpenvinoBuilder : public NetworkBuilder {
 public:
  OpenvinoBuilder(Context& context, const NetworkOptions& options)
      : options_(options), threads_(context.threads().threads()) {
    if (options.precision == NetworkPrecision::tf32) {
      throw Error("--precision tf32: only a GPU has it; use f32 or bf16 on the CPU");
    }
    ids_ = std::make_shared<op::Parameter>(ov::element::i32, ov::PartialShape{-1, -1});
    lengths_ = std::make_shared<op::Parameter>(ov::element::i32, ov::PartialShape{-1});
    // S, as a tensor of shape (1); then real(b, s) = s < lengths(b).
    const auto shape = std::make_shared<op::ShapeOf>(ids_);
    length_ = std::make_shared<op::Gather>(shape, integers({1}), integer(0));
    const auto places = std::make_shared<op::Range>(
        integer(0), std::make_shared<op::Squeeze>(length_, integers({0})), integer(1),
        ov::element::i32);
    const auto column = std::make_shared<op::Unsqueeze>(lengths_, integers({1}));
    real_ = std::make_shared<op::Less>(places, column);  // (B, S)
    mask_ = std::make_shared<op::Unsqueeze>(real_, integers({1, 2}));
  }

  Node token_ids() override { return node(ids_); }

  Node embed(Node ids, const Weights& table) override {
    CFAA_ASSERT(table.shape.size() == 2);
    vocabulary_ = table.shape[0];
    return node(std::make_shared<op::Gather>(constant(table), value(ids), integer(0)));
  }

  Node embed_positions(const Weights& table, int64_t first) override {
    CFAA_ASSERT(table.shape.size() == 2 && first + options_.max_length <= table.shape[0]);
    const auto end = std::make_shared<op::Add>(length_, integers({first}));
    const auto rows = std::make_shared<op::Slice>(constant(table), integers({first}), end,
                                                  integers({1}), integers({0}));
    return node(std::make_shared<op::Unsqueeze>(rows, integers({0})));
  }

  Node row(const Weights& table, int64_t index) override {
    CFAA_ASSERT(table.shape.size() == 2 && index >= 0 && index < table.shape[0]);
    return node(std::make_shared<op::Gather>(
        constant(table), op::Constant::create(ov::element::i64, {1, 1}, {index}), integer(0)));
  }

  Node add(Node a, Node b) override { return node(std::make_shared<op::Add>(value(a), value(b))); }

  Node layer_norm(Node x, const Weights& gamma, const Weights& beta, double epsilon) override {
    const auto normal =
        std::make_shared<op::MVN>(value(x), integers({-1}), true, static_cast<float>(epsilon),
                                  ov::op::MVNEpsMode::INSIDE_SQRT);
    const auto scaled = std::make_shared<op::Multiply>(normal, constant(gamma));
    return node(std::make_shared<op::Add>(scaled, constant(beta)));
  }

  Node linear(Node x, const Weights& weight, const Weights& bias) override {
    CFAA_ASSERT(weight.shape.size() == 2 && bias.shape.size() == 1);
    const auto product = std::make_shared<op::MatMul>(value(x), constant(weight), false, true);
    return node(std::make_shared<op::Add>(product, constant(bias)));
  }

  Node activate(Node x, Nonlinearity kind) override {
    if (kind == Nonlinearity::relu) return node(std::make_shared<op::Relu>(value(x)));
    const auto form = kind == Nonlinearity::gelu ? ov::op::GeluApproximationMode::ERF
                                                 : ov::op::GeluApproximationMode::TANH;
    return node(std::make_shared<op::Gelu>(value(x), form));
  }

  Node attention(Node q, Node k, Node v, int64_t heads) override {
    // (B, S, H) -> (B, heads, S, H / heads), and back.
    const auto split = [&](Node x) {
      const auto parts = std::make_shared<op::Reshape>(value(x), integers({0, 0, heads, -1}), true);
      return std::make_shared<op::Transpose>(parts, integers({0, 2, 1, 3}));
    };
    const auto mixed =
        std::make_shared<op::ScaledDotProductAttention>(split(q), split(k), split(v), mask_, false);
    const auto merged = std::make_shared<op::Transpose>(mixed, integers({0, 2, 1, 3}));
    return node(std::make_shared<op::Reshape>(merged, integers({0, 0, -1}), true));
  }

  Node pool(Node x, Pooling kind) override {
    if (kind == Pooling::cls) {
      return node(std::make_shared<op::Gather>(value(x), integer(0), integer(1)));
    }
    const Value real = std::make_shared<op::Unsqueeze>(real_, integers({2}));
    if (kind == Pooling::max) {
      const Value lowest =
          op::Constant::create(ov::element::f32, {}, {std::numeric_limits<float>::lowest()});
      const auto kept = std::make_shared<op::Select>(real, value(x), lowest);
      return node(std::make_shared<op::ReduceMax>(kept, integers({1}), false));
    }
    const Value zero = op::Constant::create(ov::element::f32, {}, {0.0f});
    const auto kept = std::make_shared<op::Select>(real, value(x), zero);
    const auto sum = std::make_shared<op::ReduceSum>(kept, integers({1}), false);
    const auto count = std::make_shared<op::Convert>(
        std::make_shared<op::Unsqueeze>(lengths_, integers({1})), ov::element::f32);
    return node(std::make_shared<op::Divide>(sum, count));
  }

  Node unit_length(Node x) override {
    // The bound under the root is that of PyTorch's normalize: 1e-12 of a length.
    return node(
        std::make_shared<op::NormalizeL2>(value(x), integers({1}), 1e-24f, ov::op::EpsMode::MAX));
  }

  std::unique_ptr<NetworkEngine> build(Node output) override {
    const auto result = std::make_shared<op::Result>(value(output));
    const auto shape = result->get_output_partial_shape(0);
    CFAA_ASSERT(shape.rank() == 2 && shape[1].is_static());
    const auto model = std::make_shared<ov::Model>(ov::ResultVector{result},
                                                   ov::ParameterVector{ids_, lengths_}, "encoder");
    const ov::element::Type type = element_type(options_.precision);
    try {
      ov::Core core;
      ov::CompiledModel compiled = core.compile_model(
          model, "CPU", ov::hint::inference_precision(type),
          ov::hint::performance_mode(ov::hint::PerformanceMode::THROUGHPUT),
          ov::inference_num_threads(threads_), ov::num_streams(ov::streams::Num(threads_)),
          ov::hint::enable_cpu_pinning(false));
      const std::string precision = name_of(options_.precision);
      if (compiled.get_property(ov::hint::inference_precision) != type) {
        throw Error(fmt::format("--precision {}: this processor does not compute in it; use f32",
                                precision));
      }
      const int streams = compiled.get_property(ov::num_streams).num;
      const std::string version = ov::get_openvino_version().buildNumber;
      const std::string description = fmt::format("OpenVINO {} on the CPU, {}, {} stream{}",
                                                  version.substr(0, version.find('-')), precision,
                                                  streams, streams == 1 ? "" : "s");
      return std::make_unique<OpenvinoEngine>(std::move(compiled), shape[1].get_length(),
                                              vocabulary_, options_, description);
    } catch (const ov::Exception& e) {
      throw Error("OpenVINO could not build the encoder: " + last_line(e.what()));
    }
  }

 private:
  Node node(const std::shared_ptr<ov::Node>& made) {
    nodes_.push_back(made);
    return {static_cast<int>(nodes_.size()) - 1};
  }

  Value value(Node at) const { return nodes_.at(static_cast<std::size_t>(at.index)); }

  // Over the mapped file without a copy, as float32; 16-bit weights are widened by a node, which
  // OpenVINO folds while it packs them.
  Value constant(const Weights& weights) const {
    ov::Shape shape(weights.shape.begin(), weights.shape.end());
    const ov::element::Type type = weights.dtype == DType::f32   ? ov::element::f32
                                   : weights.dtype == DType::f16 ? ov::element::f16
                                                                 : ov::element::bf16;
    CFAA_ASSERT(weights.bytes.size() == ov::shape_size(shape) * type.size());
    CFAA_ASSERT(weights.dtype == DType::f32 || weights.dtype == DType::f16 ||
                weights.dtype == DType::bf16);
    const auto address = reinterpret_cast<std::uintptr_t>(weights.bytes.data());
    std::shared_ptr<op::Constant> stored;
    if (address % type.size() == 0) {
      stored = std::make_shared<op::Constant>(type, shape, weights.bytes.data(),
                                              std::const_pointer_cast<void>(weights.owner));
    } else {
      stored = std::make_shared<op::Constant>(type, shape, weights.bytes.data());  // a copy
    }
    if (type == ov::element::f32) return stored;
    return std::make_shared<op::Convert>(stored, ov::element::f32);
  }

  NetworkOptions options_;
  int threads_;
  int64_t vocabulary_ = 0;
  std::shared_ptr<op::Parameter> ids_, lengths_;
  Value length_;  // (1)
  Value real_;    // (B, S) bool
  Value mask_;    // (B, 1, 1, S) bool
  std::vector<std::shared_ptr<ov::Node>> nodes_;
};

}  // namespace

std::unique_ptr<NetworkBuilder> make_network_builder(Context& context,
                                                     const NetworkOptions& options) {
  return std::make_unique<OpenvinoBuilder>(context, options);
}

}  // namespace cfaa::cpu

#else

#include "host/core/error.h"

namespace cfaa::cpu {

std::unique_ptr<NetworkBuilder> make_network_builder(Context&, const NetworkOptions&) {
  throw Error(
      "this program was built without OpenVINO, which runs encoders on the CPU: run tools/setup "
      "and build again, or point -DOpenVINO_DIR at the folder of OpenVINOConfig.cmake");
}

}  // namespace cfaa::cpu

#endif
