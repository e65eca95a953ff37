#include "host/embed/options.h"

#include <algorithm>

namespace cfaa {
namespace {

const std::vector<std::pair<std::string, Pooling>> kPoolings = {
    {"mean", Pooling::mean}, {"cls", Pooling::cls}, {"max", Pooling::max}};
const std::vector<std::pair<std::string, PrecisionChoice>> kPrecisions = {
    {"auto", PrecisionChoice::automatic},
    {"f32", PrecisionChoice::f32},
    {"tf32", PrecisionChoice::tf32},
    {"f16", PrecisionChoice::f16},
    {"bf16", PrecisionChoice::bf16}};

}  // namespace

std::string name_of(Pooling pooling) {
  const auto found = std::find_if(kPoolings.begin(), kPoolings.end(),
                                  [&](const auto& named) { return named.second == pooling; });
  return found->first;
}

NetworkPrecision network_precision(PrecisionChoice choice, DeviceKind device) {
  switch (choice) {
    case PrecisionChoice::automatic:
      return device == DeviceKind::cuda ? NetworkPrecision::f16 : NetworkPrecision::f32;
    case PrecisionChoice::f32:
      return NetworkPrecision::f32;
    case PrecisionChoice::tf32:
      return NetworkPrecision::tf32;
    case PrecisionChoice::f16:
      return NetworkPrecision::f16;
    case PrecisionChoice::bf16:
      return NetworkPrecision::bf16;
  }
  return NetworkPrecision::f32;
}

OptionSet embed_option_set(EmbedOptions& options) {
  OptionSet set("embed");
  set.add("model", options.model, "a Hugging Face directory of a BERT or RoBERTa model");
  set.add("layer", options.layer,
          "whose output is pooled: penultimate, last, or N (0: the embeddings)");
  set.add("pooling", options.pooling, "of a sentence's tokens", kPoolings);
  set.add("as", options.as,
          "sentence-transformers: layer, pooling, unit length and limit as modules.json has them, "
          "whatever else is asked for",
          {{"encoder", ModelForm::encoder},
           {"sentence-transformers", ModelForm::sentence_transformers}});
  set.add("precision", options.precision,
          "of the matrix products; auto: f16 on a GPU, f32 on the CPU", kPrecisions);
  set.add("max_length", options.max_length,
          "tokens of a sentence at most, longer ones are cut; 0: what the model allows",
          between(0, 1 << 20));
  set.add("split", options.split,
          "a text is the mean of its sentences, or one sequence; auto: sentences, but for a corpus "
          "as sentence-transformers",
          {{"auto", SplitChoice::automatic},
           {"sentences", SplitChoice::sentences},
           {"none", SplitChoice::none}});
  set.add("lang", options.lang, "of the sentence rules",
          {{"en", Language::kEnglish}, {"zh", Language::kChinese}});
  set.add("dtype", options.dtype, "of the vectors on disk",
          {{"float32", DType::f32}, {"float16", DType::f16}});
  set.add("batch_tokens", options.batch_tokens, "of a batch at most; 0: what suits the device",
          between(0, 1 << 24));
  set.add("window", options.window,
          "sentences that are read, sorted by length and written together; 0: what suits the "
          "device",
          between(0, 1 << 22));
  set.add("summaries", options.summaries,
          "keep an extractive summary of every user and item too, for model.review.sentences");
  set.add("cache", options.cache,
          "folder for TensorRT's engines; empty: cfaa_gpu in the user's cache folder");
  return set;
}

}  // namespace cfaa
