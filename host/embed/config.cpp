#include "host/embed/config.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstdlib>
#include <filesystem>

#include "host/core/error.h"
#include "host/encoder/sentence_transformer.h"
#include "host/io/mapped_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

const std::vector<std::pair<std::string, Pooling>> kPoolings = {
    {"mean", Pooling::mean}, {"cls", Pooling::cls}, {"max", Pooling::max}};
const std::vector<std::pair<std::string, NetworkPrecision>> kPrecisions = {
    {"f32", NetworkPrecision::f32},
    {"tf32", NetworkPrecision::tf32},
    {"f16", NetworkPrecision::f16},
    {"bf16", NetworkPrecision::bf16}};

template <class Enum>
std::string name_in(const std::vector<std::pair<std::string, Enum>>& names, Enum value) {
  for (const auto& [name, other] : names) {
    if (other == value) return name;
  }
  return "";
}

// Of the files that decide about token ids, by name and content.
std::string tokenizer_hash(const std::string& directory) {
  std::string parts;
  for (const char* name : {"vocab.txt", "vocab.json", "merges.txt", "tokenizer.json",
                           "tokenizer_config.json", "added_tokens.json"}) {
    const fs::path path = fs::path(directory) / name;
    if (!fs::exists(path)) continue;
    const MappedFile file(path.string());
    parts +=
        fmt::format("{} {:016x}\n", name, XXH3_64bits(file.bytes().data(), file.bytes().size()));
  }
  return fmt::format("{:016x}", XXH3_64bits(parts.data(), parts.size()));
}

// Where engines that take minutes to build are kept, unless the user says otherwise.
std::string default_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/cfaa_gpu";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache/cfaa_gpu" : "";
}

}  // namespace

OptionSet embed_option_set(EmbedConfig& config) {
  OptionSet set("embed");
  set.add("model", config.model, "a Hugging Face directory of a BERT or RoBERTa model");
  set.add("layer", config.layer,
          "whose output is pooled: penultimate, last, or N (0: the embeddings)");
  set.add("pooling", config.pooling, "of a sentence's tokens", kPoolings);
  set.add("as", config.as,
          "sentence-transformers: layer, pooling, unit length and limit as modules.json has them, "
          "whatever else is asked for",
          {{"encoder", ModelForm::encoder},
           {"sentence-transformers", ModelForm::sentence_transformers}});
  set.add("precision", config.precision, "of the matrix products", kPrecisions);
  set.add("max_length", config.max_length,
          "tokens of a sentence at most, longer ones are cut; 0: what the model allows",
          between(0, 1 << 20));
  set.add("split", config.split,
          "a text is the mean of its sentences, or one sequence; auto: sentences, but for a corpus "
          "as sentence-transformers",
          {{"auto", SplitChoice::automatic},
           {"sentences", SplitChoice::sentences},
           {"none", SplitChoice::none}});
  set.add("lang", config.lang, "of the sentence rules",
          {{"en", Language::kEnglish}, {"zh", Language::kChinese}});
  set.add("dtype", config.dtype, "of the vectors on disk",
          {{"float32", DType::f32}, {"float16", DType::f16}});
  set.add("batch_tokens", config.batch_tokens, "of a batch at most; 0: what suits the device",
          between(0, 1 << 24));
  set.add("window", config.window,
          "sentences that are read, sorted by length and written together; 0: what suits the "
          "device",
          between(0, 1 << 22));
  set.add("cache", config.cache,
          "folder for TensorRT's engines; empty: cfaa_gpu in the user's cache folder");
  return set;
}

LoadedModel::LoadedModel(const EmbedConfig& config, Context& context)
    : precision_(name_in(kPrecisions, config.precision)) {
  if (config.model.empty()) {
    throw Error(
        "--model is needed: the folder of a Hugging Face model (tools/get_model minilm "
        "fetches a small one)");
  }
  EncoderOptions options;
  options.layer = config.layer;
  options.pooling = config.pooling;
  options.precision = config.precision;
  options.max_length = config.max_length;
  options.batch_tokens = config.batch_tokens;
  if (context.device() == DeviceKind::cuda) {
    options.cache_directory = config.cache.empty() ? default_cache() : config.cache;
  }
  std::string directory = config.model;
  const bool whole = config.as == ModelForm::sentence_transformers;
  if (whole) {
    const SentenceTransformer read = read_sentence_transformer(directory, options);
    directory = read.model_directory;
    options = read.options;
  }
  const EncoderModel encoder(directory);
  tokenizer_ = load_tokenizer(directory);
  const int64_t block = layer_index(encoder.config(), options.layer);
  options.max_length = longest_sequence(encoder, *tokenizer_, options);
  engine_ = build_encoder(context, encoder, options);
  const nlohmann::json identity = {
      {"model", encoder.content_hash()},
      {"tokenizer", tokenizer_hash(directory)},
      {"layer", block},
      {"pooling", name_in(kPoolings, options.pooling)},
      {"unit_length", options.unit_length},
      {"strip", whole},
      {"precision", precision_},
      {"device", context.device() == DeviceKind::cuda ? "cuda" : "cpu"}};
  encoder.forget_pages();
  model_ = std::make_unique<EmbeddingModel>(
      EmbeddingModel{*tokenizer_, *engine_, options.max_length, identity, whole});
}

}  // namespace cfaa
