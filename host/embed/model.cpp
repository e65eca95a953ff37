#include "host/embed/model.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstdlib>
#include <filesystem>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/encoder/sentence_transformer.h"
#include "host/io/mapped_file.h"

namespace cfaa {
namespace {

namespace fs = std::filesystem;

// Where engines that take minutes to build are kept, unless the user says otherwise.
std::string default_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/cfaa_gpu";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache/cfaa_gpu" : "";
}

}  // namespace

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

LoadedModel::LoadedModel(const EmbedOptions& options, Context& context)
    : precision_(name_of(network_precision(options.precision, context.device()))) {
  if (options.model.empty()) {
    throw Error(
        "--model is needed: the folder of a Hugging Face model (tools/get_model minilm "
        "fetches a small one)");
  }
  EncoderOptions wanted;
  wanted.layer = options.layer;
  wanted.pooling = options.pooling;
  wanted.precision = network_precision(options.precision, context.device());
  if (options.precision == PrecisionChoice::automatic && context.device() == DeviceKind::cuda) {
    log_once("matrix products are in f16, as is usual on a GPU; --precision f32 asks for float");
  }
  wanted.max_length = options.max_length;
  wanted.batch_tokens = options.batch_tokens;
  if (context.device() == DeviceKind::cuda) {
    wanted.cache_directory = options.cache.empty() ? default_cache() : options.cache;
  }
  std::string directory = options.model;
  const bool whole = options.as == ModelForm::sentence_transformers;
  if (whole) {
    const SentenceTransformer read = read_sentence_transformer(directory, wanted);
    directory = read.model_directory;
    wanted = read.options;
  }
  const EncoderModel encoder(directory);
  tokenizer_ = load_tokenizer(directory);
  const int64_t block = layer_index(encoder.config(), wanted.layer);
  wanted.max_length = longest_sequence(encoder, *tokenizer_, wanted);
  engine_ = build_encoder(context, encoder, wanted);
  const Fields identity = {{"model", encoder.content_hash()},
                           {"tokenizer", tokenizer_hash(directory)},
                           {"layer", block},
                           {"pooling", name_of(wanted.pooling)},
                           {"unit_length", wanted.unit_length},
                           {"strip", whole},
                           {"precision", precision_},
                           {"device", context.device() == DeviceKind::cuda ? "cuda" : "cpu"}};
  encoder.forget_pages();
  model_ = std::make_unique<EmbeddingModel>(
      EmbeddingModel{*tokenizer_, *engine_, wanted.max_length, identity, whole});
}

}  // namespace cfaa
