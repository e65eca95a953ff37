#pragma once

// Trains a model: batches made ahead on another thread, steps queued without waiting for the
// device, validation and early stopping by epoch, checkpoints. The run directory:
//
//   run.json            the configuration, the data and its hash
//   metrics.jsonl       losses, gradient norms and validations, by step; tensorboard/ likewise
//   checkpoints/        to resume from (host/train/checkpoint.h)
//   best.safetensors    the parameters of the best validation, best.json
//   result.json         metrics of the test split, both domains
//   target_users.tsv, source_users.tsv    the same, user by user (host/eval/user_metrics_file.h)
//
// Killed anywhere and started again, a run ends with the same bits as one that was not.

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "host/core/context.h"
#include "host/train/batch_assembler.h"
#include "host/train/run_config.h"

namespace cfaa {

struct TrainerOptions {
  std::filesystem::path run;    // the run's directory
  int64_t from = -1;            // checkpoint to resume from; -1: the newest
  std::filesystem::path trace;  // "": no trace
  int64_t trace_steps = 1;
  const std::atomic<bool>* stop = nullptr;  // set by a signal: finish the step, checkpoint, leave
};

struct TrainOutcome {
  bool stopped = false;  // by `stop`
  int64_t steps = 0;
  nlohmann::json result;  // as in result.json; empty where stopped
};

// `config` is what run.json holds.
TrainOutcome train(Context& context, const TrainingData& data, const RunConfig& config,
                   const TrainerOptions& options);

// Opens a dataset with what the configuration's inputs need.
TrainingData load_training_data(const Dataset& dataset, const ModelOptions& model);

}  // namespace cfaa
