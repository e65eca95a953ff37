#pragma once

// What encodes: a model that was loaded for a device.

#include <memory>
#include <string>

#include "host/core/context.h"
#include "host/core/fields.h"
#include "host/embed/options.h"
#include "host/encoder/network.h"
#include "host/text/tokenizer.h"

namespace cfaa {

struct EmbeddingModel {
  const Tokenizer& tokenizer;
  NetworkEngine& engine;
  int64_t max_length = 512;  // of a sequence; the least of what user, tokenizer and network allow
  // What decides about a vector's bits: model (its hash), layer, pooling, precision, device. Kept
  // in journals and in embed.json.
  Fields identity;
  bool strip = false;  // white space at both ends of a sequence goes, as sentence-transformers does
};

// Of the files of a model's folder that decide about token ids, by name and content.
std::string tokenizer_hash(const std::string& directory);

// The model of the options on the Context's device, ready to embed.
class LoadedModel {
 public:
  // Error for whatever is wrong with the directory or does not fit it.
  LoadedModel(const EmbedOptions& options, Context& context);

  EmbeddingModel& model() { return *model_; }
  const std::string& precision() const { return precision_; }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<NetworkEngine> engine_;
  std::unique_ptr<EmbeddingModel> model_;
  std::string precision_;
};

}  // namespace cfaa
