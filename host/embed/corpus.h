#pragma once

// A corpus, which is a file or several, to one vector a document or a sentence.
//
//   vectors.npy | .safetensors   (rows, width), in the order of the input
//   vectors.ids.tsv              row, id (with an id field); by sentences: row, document, start,
//   end vectors.empty.txt            documents without a token, where there are any: one index a
//   line vectors.files.json           which files embed wrote: no other is replaced without force
//   vectors.shards/              instead of all these, with a shard (host/embed/shards/shard.h)
//
// A document is the mean of its sentences: summed in double in their order, divided, rounded once.
// The bytes do not depend on threads, batches, windows or interruptions.

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "host/embed/pipeline.h"
#include "host/embed/shards/shard.h"
#include "host/text/text_lines.h"

namespace cfaa {

struct CorpusRequest {
  std::vector<std::string> inputs;  // "-": standard input
  std::string out;  // "-" and what is no regular file: .npy as a stream, and nothing beside it
  std::optional<Shard> shard;  // only this part of the inputs
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

// Puts the shards of an output together: the files that one run over all texts writes. With `index`
// nothing is copied: the shards are verified, and "v.shards/index.json" lists them in order with
// the first row of each. Error, naming them, for shards that are missing or damaged.
struct JoinRequest {
  std::string out;  // .npy or .safetensors
  bool index = false, fresh = false, force = false;
};
EmbedReport join_corpus(const JoinRequest& request);

// The shards' folder of an output: "v.shards" of "v.npy".
std::string shards_folder(const std::string& out);

}  // namespace cfaa
