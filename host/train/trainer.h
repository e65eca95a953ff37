#pragma once

// Trains a model: batches made ahead on another thread, steps queued without waiting for the
// device, validation and early stopping by epoch, checkpoints. Killed anywhere and started again,
// training ends with the same bits as if it had not been. host/run/train.h makes a run of it.

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "host/core/context.h"
#include "host/device/group.h"
#include "host/eval/evaluation.h"
#include "host/train/batch_assembler.h"
#include "host/train/residual/residual.h"
#include "host/train/run_config.h"

namespace cfaa {

// Where it writes; a run's are named by host/run/directory/run_directory.h.
struct TrainFiles {
  std::filesystem::path folder;       // of all the others
  std::filesystem::path checkpoints;  // a folder
  std::filesystem::path best;         // best.json and best-STEP.safetensors, without what follows
  std::filesystem::path log;          // a JSON object a line
  std::filesystem::path events;       // the same for TensorBoard, a folder
};

// One call of train().
struct TrainerRequest {
  TrainFiles files;
  int64_t from = -1;            // checkpoint to resume from; -1: the newest
  std::filesystem::path trace;  // "": no trace
  int64_t trace_steps = 1;
  bool graphs = true;                       // on a GPU: replay steps from CUDA graphs
  const std::atomic<bool>* stop = nullptr;  // set by a signal: finish the step, checkpoint, leave
  std::function<void(const std::string& line)> metrics;  // takes each new line of files.log
  const ResidualBase* base = nullptr;  // not null: the model is the residual of these signals
  // The ranks that divide the parts of a step; null: this process alone. Every rank calls train()
  // and has the same outcome; the first of them reads and writes the files.
  Group* group = nullptr;
};

struct TrainOutcome {
  bool stopped = false;  // by `stop`: what follows is not there
  int64_t steps = 0;
  int64_t best_step = -1;
  double valid = 0;  // train.metric of the best step
  PerDomain<Evaluation> test;
  ResidualShare share;  // of a residual; `test` is of it
};

// The configuration is that of the run.
TrainOutcome train(Context& context, const TrainingData& data, const RunConfig& config,
                   const TrainerRequest& request);

// Opens a dataset with what the configuration's inputs need.
TrainingData load_training_data(const Dataset& dataset, const ModelOptions& model);

}  // namespace cfaa
