#pragma once

// Measures lists of any model under one protocol (host/eval/evaluation.h): those of a run, of a
// baseline, or of arrays that another program wrote.

#include <filesystem>
#include <optional>
#include <string>

#include "host/core/context.h"
#include "host/data/dataset.h"
#include "host/eval/evaluation_config.h"
#include "host/run/ranking_model.h"

namespace cfaa {

struct EvaluationRequest {
  std::string domain = "target";
  Split split = Split::test;
  EvaluationConfig eval;
  bool with_validation = false;  // measures the validation split too, for `compare`
};

struct EvaluationReport {
  EvaluationRequest request;
  bool newcomers = false;  // it is of people who were not in the data, and not of a split
  HeldOut held_out;
  Evaluation evaluation;
  std::optional<double> valid;  // NDCG@10 on validation, where asked for and there are positives
  std::string device;
  double read_seconds = 0, evaluate_seconds = 0;
};

// Ranks the split's users and measures the lists. Error where the split has no positives; NanScore
// where a score is NaN.
EvaluationReport evaluate_scorer(Context& context, const Domain& domain, const Scorer& scorer,
                                 const EvaluationRequest& request);

// NDCG@10 on validation, full ranking; nothing where that split has no positive.
std::optional<double> validation_ndcg(Context& context, const Domain& domain, const Scorer& scorer);

// A run by its best parameters, or a kept baseline.
EvaluationReport evaluate_model(Context& context, RankingModel& model,
                                const EvaluationRequest& request);

// What another program gives its users and items, as .npy: embeddings, whose product is the score,
// or the scores themselves. Rows and columns as in users.tsv and items.tsv.
struct ScoreFiles {
  std::string users, items;  // (users, D), (items, D)
  std::string scores;        // (users, items), instead
};

// Error where the files do not fit the domain, or a number in them makes a score NaN.
EvaluationReport evaluate_files(Context& context, const Domain& domain, const ScoreFiles& files,
                                const EvaluationRequest& request);

// The lists as a table: user_id, rank, item_id, score, hit.
inline constexpr const char* kListsWithHitsHeader = "user_id\trank\titem_id\tscore\thit\n";
void write_lists(const std::string& path, const EvaluationReport& report, const Domain& domain);

}  // namespace cfaa
