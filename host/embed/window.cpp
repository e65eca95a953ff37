#include "host/embed/window.h"

#include <xxhash.h>

#include "host/core/error.h"
#include "host/io/utf8.h"

namespace cfaa {
namespace {

// A window is closed by its texts' bytes, for the number of sentences is known only after
// splitting: review sentences have about 80 bytes, Chinese ones fewer characters of more bytes.
constexpr uint64_t kBytesPerSentence = 80;
constexpr int64_t kGrain = 32;  // documents that a thread takes at a time

// As Python's str.isspace().
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::string_view stripped(std::string_view text) {
  const char *begin = text.data(), *end = begin + text.size();
  for (const char* next = begin; begin < end && is_space(next_code_point(next)); begin = next) {
  }
  while (end > begin) {
    const char* last = previous_code_point(end);
    const char* after = last;
    if (!is_space(next_code_point(after))) break;
    end = last;
  }
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

TextHash hash_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64, hash.high64};
}

// What one thread made of some consecutive documents.
struct WindowReader::Part {
  std::vector<int32_t> sentences, lengths, tokens;
  std::vector<Sentence> spans;
  std::vector<int64_t> empty;
  int64_t cut = 0, replaced = 0;
};

WindowReader::WindowReader(Documents& documents, const Tokenizer& tokenizer,
                           const WindowOptions& options, ThreadPool& pool, int64_t first_document)
    : documents_(documents),
      tokenizer_(tokenizer),
      options_(options),
      pool_(pool),
      next_document_(first_document),
      splitters_(static_cast<std::size_t>(pool.threads()), SentenceSplitter(options.language)),
      scratch_(static_cast<std::size_t>(pool.threads()), TokenizerScratch(tokenizer)) {
  std::vector<int32_t> ids;
  // Refuses a length that leaves no room.
  tokenizer.encode("", static_cast<std::size_t>(options.max_length), scratch_[0], ids);
  special_tokens_ = ids.size();
}

void WindowReader::tokenize(int64_t begin, int64_t end, int worker, Part& part) {
  SentenceSplitter& splitter = splitters_[static_cast<std::size_t>(worker)];
  TokenizerScratch& scratch = scratch_[static_cast<std::size_t>(worker)];
  std::vector<Sentence> sentences;
  std::vector<int32_t> ids;
  std::string storage;
  for (int64_t d = begin; d < end; ++d) {
    const uint64_t from = d == 0 ? 0 : text_end_[static_cast<std::size_t>(d - 1)];
    std::string_view text(texts_.data() + from, text_end_[static_cast<std::size_t>(d)] - from);
    std::size_t replaced = 0;
    text = well_formed(text, storage, replaced);
    part.replaced += static_cast<int64_t>(replaced);
    if (options_.split) {
      splitter.split(text, sentences);
    } else {
      sentences.assign(1, {0, text.size()});
    }
    const std::size_t first_token = part.tokens.size(), first_length = part.lengths.size();
    bool empty = true;
    int64_t cut = 0;
    for (const Sentence& s : sentences) {
      const std::string_view whole = text.substr(s.begin, s.end - s.begin);
      const Encoding encoding =
          tokenizer_.encode(options_.strip ? stripped(whole) : whole,
                            static_cast<std::size_t>(options_.max_length), scratch, ids);
      cut += encoding.truncated;
      empty = empty && ids.size() == special_tokens_ && !encoding.truncated;
      part.tokens.insert(part.tokens.end(), ids.begin(), ids.end());
      part.lengths.push_back(static_cast<int32_t>(ids.size()));
    }
    if (empty) part.empty.push_back(next_document_ + d);
    if (empty && options_.split) {
      part.tokens.resize(first_token);
      part.lengths.resize(first_length);
      sentences.clear();
    }
    part.cut += cut;
    part.sentences.push_back(static_cast<int32_t>(sentences.size()));
    if (options_.spans) {
      to_code_point_offsets(text, sentences);
      part.spans.insert(part.spans.end(), sentences.begin(), sentences.end());
    }
  }
}

SentenceWindow WindowReader::next() {
  SentenceWindow window;
  window.first_document = next_document_;
  texts_.clear();
  text_end_.clear();
  const uint64_t bytes_before = documents_.bytes_read();
  const int64_t replaced_before = documents_.replaced();
  const uint64_t most_bytes = static_cast<uint64_t>(options_.sentences) * kBytesPerSentence;
  for (std::string_view text; texts_.size() < most_bytes &&
                              static_cast<int64_t>(text_end_.size()) < options_.sentences &&
                              documents_.next(text);) {
    texts_.append(text);
    text_end_.push_back(texts_.size());
    if (options_.hashes) window.hashes.push_back(hash_of(text));
    window.ids.append(documents_.id());
    window.id_end.push_back(window.ids.size());
  }
  window.bytes = documents_.bytes_read() - bytes_before;
  window.replaced = documents_.replaced() - replaced_before;

  const auto count = static_cast<int64_t>(text_end_.size());
  std::vector<Part> parts(static_cast<std::size_t>((count + kGrain - 1) / kGrain));
  pool_.parallel_for(count, kGrain, [&](int64_t begin, int64_t end, int worker) {
    tokenize(begin, end, worker, parts[static_cast<std::size_t>(begin / kGrain)]);
  });
  for (const Part& part : parts) {
    window.sentences.insert(window.sentences.end(), part.sentences.begin(), part.sentences.end());
    window.tokens.insert(window.tokens.end(), part.tokens.begin(), part.tokens.end());
    window.spans.insert(window.spans.end(), part.spans.begin(), part.spans.end());
    window.empty.insert(window.empty.end(), part.empty.begin(), part.empty.end());
    for (const int32_t length : part.lengths) window.begin.push_back(window.begin.back() + length);
    window.cut += part.cut;
    window.replaced += part.replaced;
  }
  next_document_ += count;
  // One huge document must not keep its memory for the rest of the run.
  if (texts_.capacity() > 4 * most_bytes) texts_.shrink_to_fit();
  return window;
}

}  // namespace cfaa
