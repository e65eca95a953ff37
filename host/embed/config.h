#pragma once

// The `embed` section of the configuration: which model, how it is read, and what a row is.

#include <memory>
#include <string>

#include "host/core/context.h"
#include "host/core/options.h"
#include "host/embed/pipeline.h"
#include "host/encoder/encoder.h"

namespace cfaa {

enum class ModelForm { encoder, sentence_transformers };
enum class SplitChoice { automatic, sentences, none };

struct EmbedConfig {
  std::string model, layer = "penultimate", cache;
  ModelForm as = ModelForm::encoder;
  Pooling pooling = Pooling::mean;
  NetworkPrecision precision = NetworkPrecision::f32;
  int64_t max_length = 0, batch_tokens = 0, window = 0;
  DType dtype = DType::f32;
  SplitChoice split = SplitChoice::automatic;
  Language lang = Language::kEnglish;
};

OptionSet embed_option_set(EmbedConfig& config);

// The configured model on the Context's device, ready to embed.
class LoadedModel {
 public:
  // Error for whatever is wrong with the directory or does not fit it.
  LoadedModel(const EmbedConfig& config, Context& context);

  EmbeddingModel& model() { return *model_; }
  const std::string& precision() const { return precision_; }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<NetworkEngine> engine_;
  std::unique_ptr<EmbeddingModel> model_;
  std::string precision_;
};

}  // namespace cfaa
