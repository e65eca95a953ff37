#pragma once

// A corpus file to one vector a document or a sentence.
//
//   vectors.npy | .safetensors   (rows, width), in the order of the input
//   vectors.ids.tsv              row, id (with an id field); by sentences: row, document, start,
//   end vectors.empty.txt            the documents without a token, where there are any: one index
//   a line
//
// A document is the mean of its sentences: summed in double in their order, divided, rounded once.
// The bytes do not depend on threads, batches, windows or interruptions.

#include <string>

#include "host/embed/pipeline.h"
#include "host/embed/vectors.h"

namespace cfaa {

struct CorpusRequest {
  std::string input;  // "-": standard input
  std::string out;
  TextLinesOptions lines;
  bool by_sentence = false;  // a row for each sentence instead of each document
  bool split = true;         // false: a document is one sequence
  Language language = Language::kEnglish;
  DType dtype = DType::f32;      // or f16
  int64_t window_sentences = 0;  // 0: default_window_sentences
  int threads = 0;
  bool fresh = false;
};

struct EmbedReport {
  EmbedCounts counts;
  int64_t rows = 0, width = 0;
  int64_t resumed_at = 0;      // documents that an interrupted run had done
  int64_t encoded_tokens = 0;  // by this run
  double seconds = 0;          // of this run
  bool was_there = false;      // nothing was left to do
};

// Error, with what to do, for whatever is wrong with input, output or an interrupted run's
// settings.
EmbedReport embed_corpus(const CorpusRequest& request, EmbeddingModel& model);

}  // namespace cfaa
