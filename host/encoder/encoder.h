#pragma once

// An encoder of the BERT or RoBERTa family as an engine that turns token ids into vectors, on the
// Context's device.
//
//   EncoderModel model("models/minilm");
//   auto tokenizer = load_tokenizer(model.directory());
//   EncoderOptions options;
//   options.max_length = longest_sequence(model, *tokenizer, options);
//   auto engine = build_encoder(*context, model, options);
//   engine->start(0, batch);
//   MatrixView<const float> vectors = engine->finish(0);
//
// The network is written here once, against NetworkBuilder (host/encoder/network.h).

#include <cstdint>
#include <memory>
#include <string>

#include "host/core/context.h"
#include "host/encoder/network.h"
#include "host/encoder/weights.h"
#include "host/text/tokenizer.h"

namespace cfaa {

struct EncoderOptions {
  // "penultimate" (block L - 1), "last" (block L), or a number N: the output of block N, 0 being
  // the embeddings. Blocks behind it are never built.
  std::string layer = "penultimate";
  Pooling pooling = Pooling::mean;
  bool unit_length = false;
  NetworkPrecision precision = NetworkPrecision::f32;
  int64_t max_length = 0;       // tokens of a sequence at most; 0: as many as there are positions
  int64_t batch_tokens = 0;     // of a batch; 0: what suits the device
  std::string cache_directory;  // for TensorRT's engines; "": none is kept
};

// The block whose output options.layer names, 0 ... L; Error for what names none.
int64_t layer_index(const EncoderConfig& config, const std::string& layer);

// The most tokens of a sequence, special tokens included: the least of options.max_length, the
// tokenizer's model_max_length and the positions that the model has. Error where the tokenizer does
// not fit the model: a vocabulary larger than the word table, or a limit that leaves no room.
int64_t longest_sequence(const EncoderModel& model, const Tokenizer& tokenizer,
                         const EncoderOptions& options);

// Builds the engine. The model's pages are forgotten afterwards; it may be closed.
std::unique_ptr<NetworkEngine> build_encoder(Context& context, const EncoderModel& model,
                                             const EncoderOptions& options);

}  // namespace cfaa
