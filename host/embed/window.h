#pragma once

// A window: some thousand sentences of consecutive documents, split and tokenized, which are then
// encoded and written together. Its borders follow from the documents and the options alone, never
// from threads or from where an earlier run was stopped.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/parallel.h"
#include "host/embed/documents.h"
#include "host/text/sentences.h"
#include "host/text/tokenizer.h"

namespace cfaa {

// XXH3-128 of a text.
struct TextHash {
  uint64_t low = 0, high = 0;
  auto operator<=>(const TextHash&) const = default;
};
TextHash hash_of(std::string_view text);

struct WindowOptions {
  bool split = true;  // false: a document is one sequence
  Language language = Language::kEnglish;
  int64_t max_length = 512;  // tokens of a sentence, special ones included
  int64_t sentences = 8192;  // of a window, about
  bool strip = false;        // white space at both ends of a sequence does not count
  bool spans = false;        // keep where each sentence lies
  bool hashes = false;       // keep each document's hash
};

struct SentenceWindow {
  int64_t first_document = 0;
  std::vector<int32_t> sentences;    // (documents) of each
  std::vector<int64_t> begin = {0};  // (sentences + 1) where its tokens begin
  std::vector<int32_t> tokens;
  std::vector<Sentence> spans;   // (sentences) in code points of the document; if asked for
  std::vector<int64_t> empty;    // documents without a token of their own
  std::vector<TextHash> hashes;  // (documents) of the texts as they are read; if asked for
  std::string ids;               // of all documents, one after the other
  std::vector<uint64_t> id_end;
  int64_t cut = 0;       // sentences that were longer than max_length
  int64_t replaced = 0;  // pieces that were not UTF-8
  uint64_t bytes = 0;    // of the source, for progress

  int64_t documents() const { return static_cast<int64_t>(sentences.size()); }
  int64_t sentence_count() const { return static_cast<int64_t>(begin.size()) - 1; }
  int64_t length(int64_t sentence) const { return begin[sentence + 1] - begin[sentence]; }
  const int32_t* tokens_of(int64_t sentence) const { return tokens.data() + begin[sentence]; }
};

// Cuts a source into windows. What is in a window does not depend on the number of threads. A
// document whose sentences have no token but the special ones (empty, or white space) has no
// sentence here and is listed as empty; unsplit it is the sequence of its special tokens, and
// listed too.
class WindowReader {
 public:
  WindowReader(Documents& documents, const Tokenizer& tokenizer, const WindowOptions& options,
               ThreadPool& pool, int64_t first_document);

  // An empty window at the end.
  SentenceWindow next();

 private:
  struct Part;
  void tokenize(int64_t begin, int64_t end, int worker, Part& part);

  Documents& documents_;
  const Tokenizer& tokenizer_;
  WindowOptions options_;
  ThreadPool& pool_;
  int64_t next_document_;
  std::size_t special_tokens_;
  std::vector<SentenceSplitter> splitters_;  // one a thread
  std::vector<TokenizerScratch> scratch_;
  std::string texts_;
  std::vector<uint64_t> text_end_;
};

}  // namespace cfaa
