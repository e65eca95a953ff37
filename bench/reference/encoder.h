#pragma once

// BERT and RoBERTa in plain loops and double, one sequence at a time, and small random models for
// it: what the engines are tested against. It reads its own tensors, not files, and knows nothing
// of the builders.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/core/dtype.h"
#include "host/encoder/network.h"

namespace cfaa::reference {

struct EncoderShape {
  std::string family = "bert";  // or "roberta": positions start at pad_id + 1
  int64_t vocabulary = 61, hidden = 24, layers = 3, heads = 3, intermediate = 40;
  int64_t positions = 40, token_types = 2, pad_id = 0;
  std::string activation = "gelu";  // gelu_new, gelu_pytorch_tanh, relu
  double epsilon = 1e-12;

  int64_t first_position() const { return family == "roberta" ? pad_id + 1 : 0; }
};

struct EncoderTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// By Hugging Face's names without prefix.
struct ReferenceEncoder {
  EncoderShape shape;
  std::map<std::string, EncoderTensor> tensors;
};

// Wide weights (as in the fixtures: normal, 0.2 about 0, layer norms 0.3 about 1), so that a slip
// in any term shows. They are rounded to `stored`, so that a file of that type holds them exactly.
ReferenceEncoder random_encoder(const EncoderShape& shape, uint64_t seed,
                                DType stored = DType::f32);

// The vector of a sequence: blocks 1 ... `layer` (0: the embeddings), pooled over all its tokens.
std::vector<double> encode(const ReferenceEncoder& encoder, const std::vector<int32_t>& ids,
                           int64_t layer, Pooling pooling = Pooling::mean,
                           bool unit_length = false);

// How write_encoder stores and names things.
struct EncoderFiles {
  DType stored = DType::f32;
  std::string prefix;      // "bert.", "roberta." or none
  bool old_names = false;  // LayerNorm.gamma and .beta, an int64 position_ids beside
  int shards = 1;          // more: with model.safetensors.index.json
};

// Writes config.json and the weights of a model directory.
void write_encoder(const ReferenceEncoder& encoder, const std::string& folder,
                   const EncoderFiles& files = {});

// Deterministic ids of a sequence, every one below the vocabulary's size.
std::vector<int32_t> random_ids(const EncoderShape& shape, int64_t length, uint64_t seed);

}  // namespace cfaa::reference
