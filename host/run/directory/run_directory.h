#pragma once

// The directory of a run. Every file name of it is here and nowhere else:
//
//   run.json            the configuration, the data and its hash; what makes a directory a run
//   metrics.jsonl       losses, gradient norms and validations, by step; tensorboard/ likewise
//   checkpoints/        to resume from (host/train/checkpoint.h)
//   best.json           the best validation, and the file with its parameters
//   best-STEP.safetensors
//   signals.json        the weights of a run of signals (host/run/signal_fit_file.h)
//   result.json         metrics of the test split, both domains (host/run/result.h)
//   target_users.tsv    the same, user by user (host/eval/user_metrics_file.h)
//   source_users.tsv
//   run.lock            while it is trained (host/run/directory/run_lock.h)
//
// A folder of several seeds holds seed-0, seed-1, ..., each of which is a run.

#include <filesystem>
#include <string>
#include <vector>

#include "host/run/directory/embedding_identity.h"
#include "host/train/run_config.h"
#include "host/train/trainer.h"

namespace cfaa {

class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.string(); }

  std::filesystem::path description() const { return path_ / "run.json"; }
  std::filesystem::path result() const { return path_ / "result.json"; }
  std::filesystem::path signals() const { return path_ / "signals.json"; }
  std::filesystem::path best() const { return path_ / "best"; }  // without the suffix
  // Of a baseline (host/run/baseline/kept_baseline.h).
  std::filesystem::path baseline() const { return path_ / "baseline.json"; }
  std::filesystem::path baseline_arrays() const { return path_ / "baseline.safetensors"; }
  std::filesystem::path user_metrics(const std::string& domain) const;
  std::filesystem::path lock() const { return path_ / "run.lock"; }
  // Where a run is kept until the one that replaces it has finished: .NAME.replaced, beside it.
  std::filesystem::path replaced() const;
  // What training writes to.
  TrainFiles train_files() const;
  // The name of an entry that is not a run's; "" where there is none.
  std::string foreign_entry() const;
  // Removes what killed writers left: temporary files, and arrays that no manifest names. For whom
  // holds the lock.
  void sweep() const;

  // True where it holds run.json.
  bool is_run() const { return std::filesystem::exists(description()); }
  // seed-0, seed-1, ... by seed; empty where there are none.
  std::vector<RunDirectory> seeds() const;
  RunDirectory seed(int64_t number) const;

 private:
  std::filesystem::path path_;
};

// run.json.
struct RunDescription {
  RunConfig config;
  std::string data;     // where the data was, an absolute path
  std::string dataset;  // its hash
  std::string version;  // of the program that trained
  EmbeddingIdentity embeddings;
};

// Error where there is no run.json, or it is not the description of a run.
RunDescription read_description(const RunDirectory& run);
void write_description(const RunDirectory& run, RunDescription description);

}  // namespace cfaa
