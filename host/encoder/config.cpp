#include "host/encoder/config.h"

#include <fmt/format.h>

#include <filesystem>

#include "host/io/json_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What a size may be: far above every model there is, and far below what would exhaust memory
// before the weights are seen not to fit.
struct Bounds {
  int64_t least, most;
};
constexpr Bounds kWidth{1, 1 << 16}, kLayers{1, 1000}, kRows{1, 10'000'000}, kTypes{0, 1 << 16};

EncoderFamily family_of(const json& config, const fs::path& path) {
  const auto type = field<std::string>(config, "model_type", "", path);
  if (type == "bert") return EncoderFamily::bert;
  if (type == "roberta") return EncoderFamily::roberta;
  if (type.empty()) {
    throw Error(path.string() +
                ": there is no 'model_type'; a BERT model has \"bert\" there, a RoBERTa model "
                "\"roberta\"");
  }
  throw Error(
      fmt::format("{}: model_type '{}' is not supported; use a model of type bert or "
                  "roberta",
                  path.string(), type));
}

Nonlinearity activation_of(const json& config, const fs::path& path) {
  const auto name = field<std::string>(config, "hidden_act", "gelu", path);
  if (name == "gelu") return Nonlinearity::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Nonlinearity::gelu_tanh;
  if (name == "relu") return Nonlinearity::relu;
  throw Error(
      fmt::format("{}: hidden_act '{}' is not supported; gelu, gelu_new, "
                  "gelu_pytorch_tanh and relu are",
                  path.string(), name));
}

int64_t extent(const json& config, const char* name, int64_t fallback, Bounds bounds,
               const fs::path& path) {
  const auto found = config.find(name);
  if (found != config.end() && !found->is_null() && !found->is_number_integer()) {
    throw Error(fmt::format("{}: the field '{}' is not a whole number: {}", path.string(), name,
                            quoted(*found)));
  }
  const auto value = field<int64_t>(config, name, fallback, path);
  if (value < bounds.least || value > bounds.most) {
    throw Error(fmt::format("{}: the field '{}' is {}; it must be from {} to {}", path.string(),
                            name, value, bounds.least, bounds.most));
  }
  return value;
}

void refuse_variants(const json& config, const fs::path& path) {
  const auto positions = field<std::string>(config, "position_embedding_type", "absolute", path);
  if (positions != "absolute") {
    throw Error(fmt::format("{}: position_embedding_type '{}' is not supported; 'absolute' is",
                            path.string(), positions));
  }
  for (const char* name : {"is_decoder", "add_cross_attention"}) {
    if (field(config, name, false, path)) {
      throw Error(fmt::format("{}: '{}' is true; a decoder cannot be used as an encoder here",
                              path.string(), name));
    }
  }
}

}  // namespace

EncoderConfig read_encoder_config(const std::string& directory) {
  if (!fs::is_directory(directory)) {
    throw Error("there is no directory '" + directory +
                "'; give the folder of a Hugging Face model");
  }
  const fs::path path = fs::path(directory) / "config.json";
  if (!fs::exists(path)) {
    throw Error("'" + directory + "' has no config.json; give the folder of a Hugging Face model");
  }
  const json config = read_json_object(path);

  EncoderConfig result;
  result.family = family_of(config, path);
  refuse_variants(config, path);
  const bool roberta = result.family == EncoderFamily::roberta;
  result.vocabulary = extent(config, "vocab_size", roberta ? 50265 : 30522, kRows, path);
  result.hidden = extent(config, "hidden_size", 768, kWidth, path);
  result.layers = extent(config, "num_hidden_layers", 12, kLayers, path);
  result.heads = extent(config, "num_attention_heads", 12, kWidth, path);
  result.intermediate = extent(config, "intermediate_size", 3072, Bounds{1, 1 << 20}, path);
  result.positions = extent(config, "max_position_embeddings", 512, kRows, path);
  result.token_types = extent(config, "type_vocab_size", 2, kTypes, path);
  result.activation = activation_of(config, path);
  result.epsilon = field(config, "layer_norm_eps", 1e-12, path);
  if (!(result.epsilon >= 0 && result.epsilon < 1)) {
    throw Error(fmt::format("{}: layer_norm_eps is {}; it must be at least 0 and below 1",
                            path.string(), result.epsilon));
  }
  if (roberta) result.first_position = extent(config, "pad_token_id", 1, {0, kRows.most}, path) + 1;
  if (result.hidden % result.heads != 0) {
    throw Error(fmt::format("{}: hidden_size {} is not a multiple of num_attention_heads {}",
                            path.string(), result.hidden, result.heads));
  }
  if (result.longest_sequence() < 2) {
    throw Error(fmt::format("{}: max_position_embeddings {} leaves no room for two tokens",
                            path.string(), result.positions));
  }
  return result;
}

}  // namespace cfaa
