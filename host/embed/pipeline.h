#pragma once

// Documents to vectors: read, split and tokenize the next window on all threads while the engine
// encodes this one, and hand every sentence's vector over in order. Memory is bounded by two
// windows, whatever the corpus. A run can be stopped at any batch: the files keep what was encoded,
// and the next run resumes there, to the same bytes.

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "host/core/fields.h"
#include "host/embed/documents.h"
#include "host/embed/model.h"
#include "host/embed/resumable_files.h"
#include "host/embed/window.h"

namespace cfaa {

// Of a whole run, those before an interruption included.
struct EmbedCounts {
  int64_t documents = 0, sentences = 0;
  int64_t tokens = 0;             // of all sentences
  int64_t encoded_sentences = 0;  // those with the same tokens in a window count once
  int64_t encoded_tokens = 0, padded_tokens = 0;
  int64_t cut = 0;       // sentences longer than the limit
  int64_t replaced = 0;  // pieces that were not UTF-8
  int64_t empty = 0;     // documents without a token

  Fields fields() const;
  static EmbedCounts of(const Fields& fields);  // zero where there is none
};

struct EmbedReport {
  EmbedCounts counts;
  int64_t rows = 0, width = 0;
  int64_t resumed_at = 0;      // documents that an interrupted run had done
  int64_t reused = 0;          // documents whose vectors were found elsewhere, by this run
  int64_t encoded_tokens = 0;  // by this run
  double seconds = 0;          // of this run
  double share = 0;            // of the texts' bytes that this run has read; 0: not known
  bool was_there = false;      // nothing was left to do
  bool stopped = false;        // on request: the same call resumes
};

// Takes the vectors in order.
class VectorSink {
 public:
  virtual ~VectorSink() = default;
  // Marks the documents whose vectors it has already, or none: nothing is encoded for them.
  virtual std::vector<char> begin_window(const SentenceWindow& window) = 0;
  // `document` counts from the window's first.
  virtual void sentence(int64_t document, const float* vector) = 0;
  // The window is over: write it.
  virtual void end_window(const SentenceWindow& window, const EmbedCounts& counts) = 0;
};

struct EmbedRun {
  std::string label;                        // of the progress
  int threads = 0;                          // of splitting and tokenizing; 0: one per core
  const std::atomic<bool>* stop = nullptr;  // set by a signal: keep what there is, and leave
};

// Sentences of a window: enough that batches are full, few enough that memory is small.
int64_t default_window_sentences(const NetworkEngine& engine);

WindowOptions window_options(const EmbedOptions& options, const EmbeddingModel& model, bool split);

// What must be equal for vectors to be the same: the model's identity and those options that decide
// about bits.
Fields embed_settings(const EmbedOptions& options, const EmbeddingModel& model, bool split);

// Encodes the documents that an interrupted run has left and hands them to the sink, which writes
// them to `files`; null: nothing is kept. Fills the report but for its rows.
void embed_documents(Documents& documents, EmbeddingModel& model, WindowOptions options,
                     const EmbedRun& run, ResumableFiles* files, VectorSink& sink,
                     EmbedReport& report);

// Everything is written: the journal's last line, with the counts.
void end_files(ResumableFiles& files, const EmbedReport& report);

}  // namespace cfaa
