#pragma once

// A directory as sentence-transformers saves it (`embed --as sentence-transformers`): modules.json
// lists a transformer, a pooling and perhaps a normalisation. With the options read here,
// build_encoder gives what that library's encode() gives.

#include <string>

#include "host/encoder/encoder.h"

namespace cfaa {

struct SentenceTransformer {
  std::string model_directory;  // of the transformer and its tokenizer
  EncoderOptions options;       // last layer, its pooling, normalisation and max_seq_length
};

// `options` gives what the directory does not say (precision, batches, cache); its max_length, if
// any, can only lower the directory's. Reads modules.json, the pooling's config.json and
// sentence_bert_config.json (max_seq_length, do_lower_case).
//
// Error, naming the file, for what encode() would do and this program does not: other modules
// (Dense, ...), pooling other than one of mean, cls, max, a prompt that is put before every text,
// lower-casing before a tokenizer that keeps case.
//
// encode() strips white space at both ends of a text. BERT's tokens do not depend on it; for
// RoBERTa's, strip it too.
SentenceTransformer read_sentence_transformer(const std::string& directory,
                                              const EncoderOptions& options);

}  // namespace cfaa
