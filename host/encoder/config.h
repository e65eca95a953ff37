#pragma once

// What config.json of a Hugging Face model says of its encoder.

#include <cstdint>
#include <string>

#include "host/encoder/network.h"

namespace cfaa {

enum class EncoderFamily { bert, roberta };

struct EncoderConfig {
  EncoderFamily family = EncoderFamily::bert;
  int64_t vocabulary = 30522;   // rows of the word table
  int64_t hidden = 768;         // H
  int64_t layers = 12;          // L
  int64_t heads = 12;           // divides H
  int64_t intermediate = 3072;  // of the feed-forward part
  int64_t positions = 512;      // rows of the position table
  int64_t first_position = 0;   // of the first token: 0 for BERT, pad_token_id + 1 for RoBERTa
  int64_t token_types = 2;      // rows of the token-type table; 0: there is none
  Nonlinearity activation = Nonlinearity::gelu;
  double epsilon = 1e-12;  // of the layer norms

  // Tokens that have a position.
  int64_t longest_sequence() const { return positions - first_position; }
};

// Reads `config.json` in the directory: model_type bert or roberta, Hugging Face's defaults where a
// key is absent. Error, naming the file and the field, for another model_type (xlm-roberta with its
// SentencePiece among them), relative positions, a decoder, an activation that is not gelu,
// gelu_new, gelu_pytorch_tanh or relu, and for sizes that cannot be.
EncoderConfig read_encoder_config(const std::string& directory);

}  // namespace cfaa
