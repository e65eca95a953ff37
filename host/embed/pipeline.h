#pragma once

// Documents to vectors: read, split and tokenize the next window on all threads while the engine
// encodes this one, and hand every sentence's vector over in order. Memory is bounded by two
// windows, whatever the corpus.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "host/embed/documents.h"
#include "host/embed/window.h"
#include "host/encoder/network.h"
#include "host/text/tokenizer.h"

namespace cfaa {

// What encodes: a model that was loaded for a device.
struct EmbeddingModel {
  const Tokenizer& tokenizer;
  NetworkEngine& engine;
  int64_t max_length = 512;  // of a sequence; the least of what user, tokenizer and network allow
  // What decides about a vector's bits, as plain values: model (its hash), layer, pooling,
  // precision, device. Kept in journals and in embed.json.
  nlohmann::json identity;
  bool strip = false;  // white space at both ends of a sequence goes, as sentence-transformers does
};

// Of a whole run, those before an interruption included.
struct EmbedCounts {
  int64_t documents = 0, sentences = 0;
  int64_t tokens = 0;             // of all sentences
  int64_t encoded_sentences = 0;  // those with the same tokens in a window count once
  int64_t encoded_tokens = 0, padded_tokens = 0;
  int64_t cut = 0;       // sentences longer than the limit
  int64_t replaced = 0;  // pieces that were not UTF-8
  int64_t empty = 0;     // documents without a token

  nlohmann::json to_json() const;
  static EmbedCounts from_json(const nlohmann::json& object);  // null: zeros
};

// What a journal keeps of a run: its counts, and its windows' size, which a resumed run takes
// over, so that its windows are those that would have been.
nlohmann::json resume_state(const EmbedCounts& counts, int64_t window_sentences);
int64_t resumed_window(const nlohmann::json& state, int64_t otherwise);

// Takes the vectors in order.
class VectorSink {
 public:
  virtual ~VectorSink() = default;
  virtual void begin_window(const SentenceWindow& window) = 0;
  // `document` counts from the window's first.
  virtual void sentence(int64_t document, const float* vector) = 0;
  // The window is over: write it.
  virtual void end_window(const SentenceWindow& window, const EmbedCounts& counts) = 0;
};

struct EmbedRun {
  std::string label;  // of the progress
  int threads = 0;    // of splitting and tokenizing; 0: one per core
};

// Sentences of a window: enough that batches are full, few enough that a kill costs little.
int64_t default_window_sentences(const NetworkEngine& engine);

// Encodes the documents behind the first `counts.documents`, which an earlier run did, and counts
// on. Returns the seconds that took.
double embed_documents(Documents& documents, EmbeddingModel& model, const WindowOptions& options,
                       const EmbedRun& run, VectorSink& sink, EmbedCounts& counts);

}  // namespace cfaa
