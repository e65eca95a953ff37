#pragma once

// What the tests of embedding share: a small tokenizer, texts, and runs over the hashed engine.

#include <fmt/format.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "host/embed/corpus.h"
#include "tests/embed/hashed_engine.h"
#include "tests/golden.h"
#include "tests/temporary_folder.h"

namespace cfaa::test {

inline const Tokenizer& small_tokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(text_data("bert"));
  return *tokenizer;
}

// Reviews of a few sentences, many of them repeated, some empty.
inline std::vector<std::string> random_texts(int count, unsigned seed) {
  std::mt19937 random(seed);
  const std::vector<std::string> words = {"a",  "guitar", "the", "fine", "naïve", "it",
                                          "is", "not",    "x",   "好",   "very",  "one"};
  const std::vector<std::string> common = {"Great.", "I like it!", "Works fine."};
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (unsigned s = random() % 5; s > 0; --s) {
      if (!text.empty()) text += ' ';
      if (random() % 3 == 0) {
        text += common[random() % common.size()];
        continue;
      }
      for (unsigned w = 1 + random() % 14; w > 0; --w) text += words[random() % words.size()] + " ";
      text.back() = '.';
    }
    texts.push_back(text);
  }
  return texts;
}

inline std::string as_lines(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  return lines;
}

inline EmbedReport run_corpus(const CorpusRequest& request, HashedEngine& engine,
                              int64_t max_length = 24, Fields identity = {{"model", "hashed"}}) {
  EmbeddingModel model{small_tokenizer(), engine, max_length, std::move(identity)};
  return embed_corpus(request, model);
}

// By plain loops: the vectors of a text's sentences.
inline std::vector<std::vector<float>> sentence_vectors(const std::string& text, bool split,
                                                        int64_t max_length, int64_t width) {
  SentenceSplitter splitter(Language::kEnglish);
  TokenizerScratch scratch(small_tokenizer());
  std::vector<Sentence> sentences = {{0, text.size()}};
  if (split) splitter.split(text, sentences);
  std::vector<std::vector<float>> vectors;
  std::vector<int32_t> ids;
  for (const Sentence& s : sentences) {
    small_tokenizer().encode(text.substr(s.begin, s.end - s.begin),
                             static_cast<std::size_t>(max_length), scratch, ids);
    vectors.push_back(HashedEngine::vector_of(ids.data(), static_cast<int64_t>(ids.size()), width));
  }
  return vectors;
}

inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline bool exists(const std::string& path) {
  return std::filesystem::exists(path);
}

}  // namespace cfaa::test
