#pragma once

// Checkpoints of a run: `checkpoints/step-00000120.safetensors` with every parameter and Adam's
// moments, and `step-00000120.json`, its manifest: where training stood, and the file's size and
// hash. The manifest is written last, atomically: a checkpoint is there when its manifest is.
//
// Writing goes on beside training: the arrays are copied first, a thread writes them.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
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

  nlohmann::json to_json() const;
  static TrainState from_json(const nlohmann::json& fields);
};

struct NamedArray {
  std::string name;
  int64_t rows = 0, cols = 0;
  std::vector<float> f32;  // one of these two
  std::vector<double> f64;
};

// A copy of all parameters; without `moments`, of the weights alone.
template <class T>
std::vector<NamedArray> copy_parameters(Context& context, Parameters<T>& parameters, bool moments);

// Puts a checkpoint's arrays in the parameters. Error where one is missing or of another shape.
template <class T>
void restore_parameters(Context& context, const std::string& path, Parameters<T>& parameters,
                        bool moments);

class Checkpoints {
 public:
  Checkpoints(std::filesystem::path directory, int64_t keep);
  ~Checkpoints();

  // Starts writing; waits for the one before. A failure (a full disk) is thrown by the next call.
  void write(std::vector<NamedArray> arrays, const TrainState& state);
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

  // Removes all.
  void clear();

 private:
  std::vector<int64_t> steps() const;
  void write_now(const std::vector<NamedArray>& arrays, const TrainState& state);

  std::filesystem::path directory_;
  int64_t keep_;
  std::thread writer_;
  std::exception_ptr failure_;
};

// One file of arrays with its hash in a manifest beside it, as a checkpoint has; for best.*
void write_arrays(const std::filesystem::path& stem, const std::vector<NamedArray>& arrays,
                  const nlohmann::json& fields);
// The manifest of `stem`.json; Error where the file beside it is damaged.
nlohmann::json check_arrays(const std::filesystem::path& stem);

}  // namespace cfaa
