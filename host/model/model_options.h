#pragma once

// What the model is made of: the `model` section of the configuration, by its keys.

#include <cstdint>
#include <string>
#include <vector>

#include "host/core/options.h"
#include "host/model/loss_options.h"

namespace cfaa {

enum class TowerSharing { separate, tied_start, shared };
enum class Residual { none, id, id_history };
enum class HistoryPooling { sum, mean };
enum class HistoryLabels { ignore, signs, split };
enum class ReviewScale { raw, unit, standardize };
enum class EncoderKind { towers, convolution, word_memory };
enum class ReviewPooling { max, attention };
enum class ReviewSentences { all, summary };
enum class ScorerKind { none, mlp, dot, mlp_dot, fm, gated_product };

struct ModelOptions {
  EncoderKind encoder = EncoderKind::towers;
  int64_t dim = 300;
  std::vector<std::string> inputs = {"id", "history", "review"};
  int64_t id_dim = 0, history_dim = 0;  // 0: dim
  HistoryPooling history_pooling = HistoryPooling::mean;
  HistoryLabels history_labels = HistoryLabels::signs;
  bool history_exclude_self = true;
  int64_t history_max = 100;
  ReviewScale review_scale = ReviewScale::standardize;
  ReviewSentences review_sentences = ReviewSentences::all;
  bool review_exclude_self = true;
  std::string words_model;  // a folder; "": none
  int64_t words_max = 100, words_row_max = 200;
  int64_t filters = 100, window = 3, attention = 32;  // of the convolution
  ReviewPooling pooling = ReviewPooling::max;
  std::vector<int64_t> layers = {300};
  Residual residual = Residual::id_history;
  double dropout = 0.2;
  TowerSharing towers = TowerSharing::tied_start;
  ScorerKind scorer = ScorerKind::mlp_dot;
  std::vector<int64_t> scorer_layers = {64};
  double scorer_dropout = 0;
  int64_t factors = 8;
  double table_scale = 0.1;
  double output_scale = 0.1;
  LossOptions losses;  // a section of their own

  bool has(const char* input) const;
  // Error where values do not go together.
  void check() const;
  void check_words() const;
  // Of a row of Z: the attributes and, where the scorer wants one, the bias of a user or an item.
  int64_t z_columns() const { return scorer == ScorerKind::gated_product ? dim + 1 : dim; }
  int64_t id_columns() const { return !has("id") ? 0 : id_dim > 0 ? id_dim : z_columns(); }
  int64_t history_columns() const {
    return !has("history") ? 0 : history_dim > 0 ? history_dim : z_columns();
  }
  // Reviews as the vectors that `embed` made, or as their words.
  bool reads_vectors() const { return has("review") && !reads_words(); }
  bool reads_words() const { return encoder != EncoderKind::towers; }
  bool mlp() const { return scorer == ScorerKind::mlp || scorer == ScorerKind::mlp_dot; }
  bool dot() const { return scorer == ScorerKind::dot || scorer == ScorerKind::mlp_dot; }
};

OptionSet model_option_set(ModelOptions& options);

}  // namespace cfaa
