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
enum class ScorerKind { mlp, dot, mlp_dot };

struct ModelOptions {
  int64_t dim = 300;
  std::vector<std::string> inputs = {"id", "history", "review"};
  int64_t id_dim = 0, history_dim = 0;  // 0: dim
  HistoryPooling history_pooling = HistoryPooling::mean;
  HistoryLabels history_labels = HistoryLabels::signs;
  bool history_exclude_self = true;
  int64_t history_max = 100;
  ReviewScale review_scale = ReviewScale::standardize;
  bool review_exclude_self = true;
  std::vector<int64_t> layers = {300};
  Residual residual = Residual::id_history;
  double dropout = 0.2;
  TowerSharing towers = TowerSharing::tied_start;
  ScorerKind scorer = ScorerKind::mlp_dot;
  std::vector<int64_t> scorer_layers = {64};
  double table_scale = 0.1;
  double output_scale = 0.1;
  LossOptions losses;  // a section of their own

  bool has(const char* input) const;
  int64_t id_columns() const { return !has("id") ? 0 : id_dim > 0 ? id_dim : dim; }
  int64_t history_columns() const {
    return !has("history") ? 0 : history_dim > 0 ? history_dim : dim;
  }
  bool mlp() const { return scorer != ScorerKind::dot; }
  bool dot() const { return scorer != ScorerKind::mlp; }
};

OptionSet model_option_set(ModelOptions& options);

}  // namespace cfaa
