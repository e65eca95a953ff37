#pragma once

// Two small domains in memory, with review vectors, for tests of the model and of training.

#include <memory>

#include "host/train/batch_assembler.h"
#include "tests/on_device.h"

namespace cfaa::test {

class SmallWorld {
 public:
  // The source has labels 0 and 1, the target positives only. Every user and item has at least one
  // interaction but the last item of the target, which has none.
  explicit SmallWorld(int64_t users = 7, int64_t items = 5, int64_t review_dim = 4)
      : data_{dataset_, {}, {}, {}} {
    fill(dataset_.source, "source", users, items, true);
    fill(dataset_.target, "target", users + 2, items + 1, false);
    for (std::size_t d = 0; d < 2; ++d) {
      const Domain& domain = data_.domain(d);
      data_.neighbours[d] = make_neighbours(domain);
      data_.reviews[d] = std::make_unique<ReviewVectors>(domain, reviews(domain, review_dim),
                                                         ReviewScale::standardize);
      data_.texts[d] = std::make_unique<TokenizedReviews>(texts(domain));
    }
  }

  const TrainingData& data() const { return data_; }
  TokenizedReviews& texts(std::size_t domain) { return *data_.texts[domain]; }
  const Dataset& dataset() const { return dataset_; }

 private:
  static void fill(Domain& domain, const char* name, int64_t users, int64_t items, bool labels) {
    domain.name = name;
    for (int64_t u = 0; u < users; ++u) domain.users.append("u" + std::to_string(100 + u));
    for (int64_t i = 0; i < items; ++i) domain.items.append("i" + std::to_string(100 + i));
    for (int64_t u = 0; u < users; ++u) {
      for (int64_t i = 0; i < items - (labels ? 0 : 1); ++i) {
        if ((u + 2 * i) % 3 == 2 && i != u % (items - 1)) continue;
        domain.train.user.push_back(static_cast<int32_t>(u));
        domain.train.item.push_back(static_cast<int32_t>(i));
        domain.train.label.push_back(labels && (u * i) % 4 == 1 ? 0.0f : 1.0f);
        domain.train.rating.push_back(5);
        domain.train.time.push_back(0);
      }
    }
  }

  // Row 0 of each domain is a review without a sentence.
  static ReviewSums reviews(const Domain& domain, int64_t dim) {
    struct Arrays {
      std::vector<float> sums;
      std::vector<int32_t> counts;
    };
    const int64_t rows = domain.train.size();
    const auto arrays = std::make_shared<Arrays>();
    arrays->sums = normal<float>(rows * dim, domain.name == "source" ? 5 : 6, 0.2);
    std::fill_n(arrays->sums.begin(), dim, 0.0f);
    for (int64_t r = 0; r < rows; ++r) arrays->counts.push_back(static_cast<int32_t>(r % 4));
    return {DType::f32, reinterpret_cast<const std::byte*>(arrays->sums.data()),
            arrays->counts.data(), dim, arrays};
  }

  // Up to five of nine words; row 0 of each domain has none.
  static TokenizedReviews texts(const Domain& domain) {
    TokenizedReviews texts{{0}, {}, 3, normal<float>(9 * 3, domain.name == "source" ? 7 : 8)};
    for (int64_t r = 0; r < domain.train.size(); ++r) {
      for (int64_t w = 0; w < r % 6; ++w) {
        texts.word.push_back(static_cast<int32_t>((r * r + 5 * w * w + w) % 9));
      }
      texts.offset.push_back(std::ssize(texts.word));
    }
    return texts;
  }

  Dataset dataset_;
  TrainingData data_;
};

// A model small enough for its every parameter to be nudged.
inline ModelOptions small_model() {
  ModelOptions options;
  options.dim = 6;
  options.id_dim = 3;
  options.history_dim = 2;
  options.residual = Residual::none;
  options.output_scale = 0.4;
  options.layers = {5};
  options.dropout = 0.3;
  options.scorer_layers = {4};
  return options;
}

// One that reads words, for the target alone.
inline ModelOptions small_convolution(ReviewPooling pooling) {
  ModelOptions options = small_model();
  options.encoder = EncoderKind::convolution;
  options.words_model = "in memory";
  options.pooling = pooling;
  options.filters = 4;
  options.window = 2;
  options.attention = 3;
  options.id_dim = 0;
  options.inputs = {"review"};
  options.scorer = ScorerKind::fm;
  options.factors = 2;
  options.losses.choose(Variant::base);
  if (pooling == ReviewPooling::attention) {
    options.inputs = {"id", "review"};
    options.scorer = ScorerKind::gated_product;
  }
  return options;
}

inline ModelOptions small_word_memory() {
  ModelOptions options = small_convolution(ReviewPooling::max);
  options.encoder = EncoderKind::word_memory;
  options.inputs = {"id", "review"};
  options.id_dim = 3;  // and a word's vector of 3
  options.words_row_max = 6;
  options.scorer = ScorerKind::dot;
  return options;
}

inline TrainOptions small_training() {
  TrainOptions options;
  options.batch_size = 8;
  options.target_negatives = 2;
  options.learning_rate = 1e-3;
  options.embedding_decay = 1e-4;
  return options;
}

}  // namespace cfaa::test
