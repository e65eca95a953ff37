#pragma once

// Checkpoints of a run: `checkpoints/step-00000120.safetensors` with every parameter and Adam's
// moments, and `step-00000120.json`, its manifest: where training stood, and the file's size and
// hash. The manifest is written last, atomically: a checkpoint is there when its manifest is.
//
// Training waits until the system has the bytes, piece by piece, so that there is no second copy of
// the parameters in the program; a thread waits for the disk.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/model/parameters.h"

namespace cfaa {

// Where training stands. Batches are functions of the step, so this and the arrays are all.
struct TrainState {
  int64_t step = 0;  // steps done
  double best = 0;   // value of the metric at the best validation
  int64_t best_step = -1;
  int64_t waited = 0;  // validations since
  bool finished = false;
};

// Puts a checkpoint's arrays in the parameters. Error where one is missing or of another shape.
template <class T>
void restore_parameters(Context& context, const std::string& path, Parameters<T>& parameters,
                        bool moments);

// The parameters of the best validation, and which it was: `stem`-STEP.safetensors, and `stem`.json
// with that name, its size and hash. The arrays are written under a name of their own and the
// manifest is switched to them last, so that at every moment the two belong together.
struct BestParameters {
  int64_t step = 0;
  std::string metric;
  double value = 0;
};
template <class T>
void write_best(Context& context, const std::filesystem::path& stem, Parameters<T>& parameters,
                const BestParameters& best);
// Error where there are none yet, where they are damaged, or where they are of another model.
template <class T>
BestParameters restore_best(Context& context, const std::filesystem::path& stem,
                            Parameters<T>& parameters);
// Removes arrays that no manifest names: of best, and of checkpoints whose writing was cut short.
void sweep_arrays(const std::filesystem::path& best, const std::filesystem::path& checkpoints);

class Checkpoints {
 public:
  Checkpoints(std::filesystem::path directory, int64_t keep);
  ~Checkpoints();

  // Starts writing; waits for the one before. A failure (a full disk) is thrown here or
  // by the next call.
  template <class T>
  void write(Context& context, Parameters<T>& parameters, const TrainState& state);
  // Waits until everything is on disk; throws what went wrong.
  void finish();

  struct Found {
    int64_t step;
    std::string arrays;  // path
    TrainState state;
  };
  // The newest, its hash checked; nothing where there is none. Error, naming the one before, where
  // it is damaged. `step` >= 0: that one.
  std::optional<Found> newest(int64_t step = -1) const;

 private:
  std::vector<int64_t> steps() const;
  void remove_oldest() const;

  std::filesystem::path directory_;
  int64_t keep_;
  std::thread writer_;
  std::exception_ptr failure_;
};

}  // namespace cfaa
