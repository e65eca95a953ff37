#pragma once

// Trains a run in its directory, or resumes the one that is there.
//
//   const auto context = make_context("auto");
//   RunConfig config;
//   const TrainingSet data("data", config.model);
//   const TrainedRun trained = train_run(*context, data, {.out = "run", .config = config});
//   trained.result.domains.at("target").metrics.at("NDCG@10")

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "host/core/context.h"
#include "host/data/dataset.h"
#include "host/run/result.h"
#include "host/train/trainer.h"

namespace cfaa {

// A prepared directory with what the model's inputs need of it; serves any number of runs.
class TrainingSet {
 public:
  // Error where the directory is not a prepared one, or the review embeddings that the model reads
  // are not there.
  TrainingSet(const std::filesystem::path& directory, const ModelOptions& model);
  TrainingSet(const TrainingSet&) = delete;
  TrainingSet& operator=(const TrainingSet&) = delete;

  const std::filesystem::path& directory() const { return directory_; }
  const Dataset& dataset() const { return dataset_; }
  const TrainingData& data() const { return data_; }
  const EmbeddingIdentity& embeddings() const { return embeddings_; }

 private:
  std::filesystem::path directory_;
  Dataset dataset_;
  TrainingData data_;
  EmbeddingIdentity embeddings_;  // of the reviews, where the model reads them
};

struct TrainRequest {
  std::filesystem::path out = "run";  // the run's directory
  RunConfig config;
  // Start over instead of resuming. The run that is there is kept as .NAME.replaced until this one
  // has finished.
  bool fresh = false;
  int64_t from = -1;            // checkpoint to resume from; -1: the newest
  std::filesystem::path trace;  // folder for the first steps' arrays; "": none
  int64_t trace_steps = 1;
  bool graphs = true;                       // on a GPU: replay steps from CUDA graphs
  const std::atomic<bool>* stop = nullptr;  // set it, and the run stops at its next checkpoint
  // Takes each line of metrics.jsonl, an object of JSON, as it is written.
  std::function<void(const std::string& line)> metrics;
  // The ranks that train it together (train.parts), each by a call of its own; null: this process
  // alone. The first of them reads and writes `out`.
  Group* group = nullptr;
};

struct TrainedRun {
  bool stopped = false;  // by `stop`: the same request resumes
  int64_t steps = 0;     // done
  RunResult result;      // where it was not stopped
};

// With `request.config.signals.with_model()` signals are weighed first, or read where the run has
// weighed them, and the model is trained as their residual.
// Error where the configuration does not go together, where the directory holds something else than
// this very run, or where another process trains it.
TrainedRun train_run(Context& context, const TrainingSet& data, const TrainRequest& request);

// The same for a run of signals alone, `request.config.signals.alone()`. Fits their weights and
// measures both domains; a run that was interrupted starts over, to the same bits.
TrainedRun train_signals(Context& context, const std::filesystem::path& data,
                         const TrainRequest& request);

}  // namespace cfaa
