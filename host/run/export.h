#pragma once

// The trained embeddings of both domains (of one, for a baseline), with their ids, and what makes
// scores of them: arrays that other programs read.
//
//   source_users, source_items, target_users, target_items   (rows, D) float32, and a .tsv with the
//                                                            id of each row
//   scorer.json                how a score is made of a user's row and an item's
//   scorer_0_weight, scorer_0_bias, ...                      the layers of the scorer's MLP, if any
//
// A run of signals has no embeddings; its scores are sparse products:
//
//   target_left_offset, target_left_column, target_left_value     (users, K) in CSR form, and
//   target_right_offset, ...                                      (K, items)
//   target_user_factors, target_item_factors                      where factors take part
//
// A run whose model is the residual of signals has both, unless its model counts for nothing.
//
// As .npy, or all arrays in one embeddings.safetensors, or embeddings with their ids as tables of
// the columns id (string) and vector (list of float32) in target_users.parquet and so on, and what
// else there is as .npy.

#include <filesystem>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/run/ranking_model.h"

namespace cfaa {

enum class ExportFormat { npy, safetensors, parquet };  // parquet: where the build has Arrow

// embeddings: the model's own, of which the scorer makes scores.
// inner_product: such whose product is the score, for an index like faiss.IndexFlatIP. The
// embeddings of a run with model.scorer=dot are; a scorer with an MLP has none.
enum class ExportVectors { embeddings, inner_product };

struct ExportRequest {
  std::filesystem::path out;  // a directory that is no run
  ExportFormat format = ExportFormat::npy;
  ExportVectors vectors = ExportVectors::embeddings;
  bool force = false;  // replace files that an export did not write
};

struct ExportReport {
  std::vector<std::filesystem::path> files;  // written
  std::string score;                         // how a score is made, in one line
};

// Error where `out` is a run, where a file there was not written by an export, or where the scorer
// is no inner product and one was asked for, or where the model is a baseline without embeddings.
// Of a run of signals: its sparse matrices.
ExportReport export_embeddings(RankingModel& model, const ExportRequest& request);

}  // namespace cfaa
