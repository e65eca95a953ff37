#pragma once

// A corpus file to one vector a document or a sentence.
//
//   vectors.npy | .safetensors   (rows, width), in the order of the input
//   vectors.ids.tsv              row, id (with an id field); by sentences: row, document, start,
//   end vectors.empty.txt            documents without a token, where there are any: one index a
//   line vectors.files.json           which files embed wrote: no other is replaced without force
//
// A document is the mean of its sentences: summed in double in their order, divided, rounded once.
// The bytes do not depend on threads, batches, windows or interruptions.

#include <atomic>
#include <string>

#include "host/embed/pipeline.h"
#include "host/text/text_lines.h"

namespace cfaa {

struct CorpusRequest {
  std::string input;  // "-": standard input
  std::string out;    // "-" and what is no regular file: .npy as a stream, and nothing beside it
  TextLinesOptions lines;
  bool by_sentence = false;  // a row for each sentence instead of each document
  EmbedOptions options;
  int64_t limit = 0;  // documents; 0: all
  int threads = 0;
  bool fresh = false;  // forget an interrupted run
  bool force = false;  // replace files that embed did not write
  const std::atomic<bool>* stop = nullptr;
};

// Error, with what to do, for whatever is wrong with input, output or an interrupted run's
// settings.
EmbedReport embed_corpus(const CorpusRequest& request, EmbeddingModel& model);

}  // namespace cfaa
