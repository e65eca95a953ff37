#include "host/encoder/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "host/core/error.h"
#include "host/encoder/network.h"

namespace cfaa {
namespace {

// The network of one model: each method appends a part and returns its output.
class EncoderNetwork {
 public:
  EncoderNetwork(NetworkBuilder& builder, const EncoderModel& model)
      : builder_(builder), model_(model), config_(model.config()) {}

  // LayerNorm(word + token type 0 + position): (B, S, H).
  Node embeddings() {
    Node x = builder_.embed(builder_.token_ids(), weights("embeddings.word_embeddings.weight"));
    if (config_.token_types > 0) {
      x = builder_.add(x, builder_.row(weights("embeddings.token_type_embeddings.weight"), 0));
    }
    x = builder_.add(x, builder_.embed_positions(weights("embeddings.position_embeddings.weight"),
                                                 config_.first_position));
    return norm(x, "embeddings.LayerNorm");
  }

  // h = LayerNorm(x + W_o attention(x)), LayerNorm(h + W_2 act(W_1 h)).
  Node block(Node x, int64_t index) {
    const std::string name = fmt::format("encoder.layer.{}", index);
    const Node q = linear(x, name + ".attention.self.query");
    const Node k = linear(x, name + ".attention.self.key");
    const Node v = linear(x, name + ".attention.self.value");
    const Node context = builder_.attention(q, k, v, config_.heads);
    const Node attended = linear(context, name + ".attention.output.dense");
    const Node h = norm(builder_.add(attended, x), name + ".attention.output.LayerNorm");
    const Node wide = linear(h, name + ".intermediate.dense");
    const Node narrow = linear(builder_.activate(wide, config_.activation), name + ".output.dense");
    return norm(builder_.add(narrow, h), name + ".output.LayerNorm");
  }

 private:
  const Weights& weights(const std::string& name) const { return model_.weights(name); }

  Node norm(Node x, const std::string& name) {
    return builder_.layer_norm(x, weights(name + ".weight"), weights(name + ".bias"),
                               config_.epsilon);
  }

  Node linear(Node x, const std::string& name) {
    return builder_.linear(x, weights(name + ".weight"), weights(name + ".bias"));
  }

  NetworkBuilder& builder_;
  const EncoderModel& model_;
  const EncoderConfig& config_;
};

int64_t limit_of(const EncoderConfig& config, const EncoderOptions& options) {
  const int64_t positions = config.longest_sequence();
  return options.max_length > 0 ? std::min(options.max_length, positions) : positions;
}

}  // namespace

int64_t layer_index(const EncoderConfig& config, const std::string& layer) {
  if (layer == "penultimate") return config.layers - 1;
  if (layer == "last") return config.layers;
  int64_t index = -1;
  const char* end = layer.data() + layer.size();
  const auto [stop, problem] = std::from_chars(layer.data(), end, index);
  if (problem != std::errc() || stop != end || index < 0 || index > config.layers) {
    throw Error(
        fmt::format("--layer {}: the model has the layers 0 (embeddings) to {}; give one of "
                    "them, penultimate or last",
                    layer, config.layers));
  }
  return index;
}

int64_t longest_sequence(const EncoderModel& model, const Tokenizer& tokenizer,
                         const EncoderOptions& options) {
  const EncoderConfig& config = model.config();
  if (static_cast<int64_t>(tokenizer.vocabulary_size()) > config.vocabulary) {
    throw Error(
        fmt::format("'{}': the tokenizer has {} tokens and the word table of the weights "
                    "only {} rows; they do not belong together",
                    model.directory(), tokenizer.vocabulary_size(), config.vocabulary));
  }
  int64_t limit = limit_of(config, options);
  if (tokenizer.model_max_length() < static_cast<std::size_t>(limit)) {
    limit = static_cast<int64_t>(tokenizer.model_max_length());
  }
  if (limit < 2) {
    throw Error(fmt::format("--max-length {}: two special tokens need a limit of at least 2",
                            options.max_length));
  }
  return limit;
}

std::unique_ptr<NetworkEngine> build_encoder(Context& context, const EncoderModel& model,
                                             const EncoderOptions& options) {
  const int64_t blocks = layer_index(model.config(), options.layer);
  NetworkOptions network_options;
  network_options.precision = options.precision;
  network_options.max_length = limit_of(model.config(), options);
  network_options.batch_tokens = options.batch_tokens;
  network_options.cache_directory = options.cache_directory;
  if (!options.cache_directory.empty()) {
    // The engine is of this graph over these weights.
    network_options.content_hash =
        fmt::format("{}-{}-{}-{}", model.content_hash(), blocks, static_cast<int>(options.pooling),
                    options.unit_length ? 1 : 0);
  }

  const auto builder = make_network_builder(context, network_options);
  EncoderNetwork network(*builder, model);
  Node x = network.embeddings();
  for (int64_t i = 0; i < blocks; ++i) x = network.block(x, i);
  x = builder->pool(x, options.pooling);
  if (options.unit_length) x = builder->unit_length(x);
  auto engine = builder->build(x);
  model.forget_pages();
  return engine;
}

}  // namespace cfaa
