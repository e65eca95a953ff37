#include "host/embed/tokenized_reviews.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "host/core/dtype.h"
#include "host/core/error.h"
#include "host/data/review_text.h"
#include "host/embed/model.h"
#include "host/encoder/weights.h"
#include "host/text/tokenizer.h"

namespace cfaa {
namespace {

// The whole table, scaled to unit RMS.
std::vector<float> word_table(const EncoderModel& model) {
  const Weights& table = model.weights("embeddings.word_embeddings.weight");
  std::vector<float> values(
      static_cast<std::size_t>(model.config().vocabulary * model.config().hidden));
  convert<float>(table.dtype, table.bytes.data(), 1, static_cast<int64_t>(values.size()),
                 values.data());
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  const double rms = std::sqrt(squares / static_cast<double>(values.size()));
  if (rms > 0) {
    for (float& value : values) value = static_cast<float>(value / rms);
  }
  return values;
}

EncoderModel open_model(const std::string& model) {
  if (!std::filesystem::is_directory(model)) {
    throw Error(
        fmt::format("model.words.model: there is no folder {}; give that of a Hugging Face "
                    "model (tools/get_model minilm fetches one to build/models/minilm)",
                    model));
  }
  return EncoderModel(model);
}

}  // namespace

TokenizedReviews tokenize_reviews(const Domain& domain, const std::string& model, int64_t most) {
  const EncoderModel encoder = open_model(model);
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model);
  const ReviewTextFile file(domain.text_path(Split::train));
  if (file.count() != domain.train.size()) {
    throw Error(fmt::format("{}: has {} texts, and there are {} training interactions",
                            domain.text_path(Split::train).string(), file.count(),
                            domain.train.size()));
  }
  TokenizerScratch scratch(*tokenizer);
  std::vector<int32_t> ids;
  tokenizer->encode("", Tokenizer::kNoLimit, scratch, ids);
  const std::size_t special = ids.size(), opening = special / 2, closing = special - opening;

  TokenizedReviews texts{{0}, {}, encoder.config().hidden, {}};
  const std::vector<float> table = word_table(encoder);
  const auto width = static_cast<std::size_t>(texts.width);
  std::vector<int32_t> row_of(static_cast<std::size_t>(encoder.config().vocabulary), -1);
  for (int64_t review = 0; review < file.count(); ++review) {
    tokenizer->encode(file.text(review), static_cast<std::size_t>(most) + special, scratch, ids);
    for (std::size_t i = opening; i + closing < ids.size(); ++i) {
      const auto id = static_cast<std::size_t>(ids[i]);
      if (id >= row_of.size()) {
        throw Error(
            fmt::format("{}: its tokenizer has words that its weights have no vector for", model));
      }
      if (row_of[id] < 0) {
        row_of[id] = static_cast<int32_t>(texts.vectors.size() / width);
        const auto first = table.begin() + static_cast<std::ptrdiff_t>(id * width);
        texts.vectors.insert(texts.vectors.end(), first, first + texts.width);
      }
      texts.word.push_back(row_of[id]);
    }
    texts.offset.push_back(static_cast<int64_t>(texts.word.size()));
  }
  encoder.forget_pages();
  if (texts.word.empty()) {
    throw Error(
        fmt::format("{}: no training review has a word, and model.encoder reads words; use "
                    "model.encoder towers with the inputs id and history",
                    domain.path.string()));
  }
  return texts;
}

std::string word_model_hash(const std::string& model) {
  return open_model(model).content_hash() + "-" + tokenizer_hash(model);
}

}  // namespace cfaa
