#pragma once

// Checkpoints of a run: `checkpoints/step-00000120.safetensors` with every parameter and Adam's
// moments, and `step-00000120.json`, its manifest: where training stood, and the file's size and
// hash. The manifest is written last, atomically: a checkpoint is there when its manifest is.
//
// Training waits until the system has the bytes, piece by piece, so that there is no second copy of
// the parameters in the program; a thread waits for the disk.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/io/atomic_file.h"
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

// Puts a checkpoint's arrays in the parameters. Error where one is missing or of another shape.
template <class T>
void restore_parameters(Context& context, const std::string& path, Parameters<T>& parameters,
                        bool moments);

// One file of arrays and, with its size and hash, a manifest beside it: a checkpoint, or best.*
class ArraysFile {
 public:
  // Gives the arrays' bytes to the system; without `moments`, those of the weights alone.
  template <class T>
  ArraysFile(Context& context, const std::filesystem::path& stem, Parameters<T>& parameters,
             bool moments);
  ArraysFile(const ArraysFile&) = delete;
  ArraysFile& operator=(const ArraysFile&) = delete;

  // Waits for the disk, puts the file in its place, then the manifest: `fields` and the hash.
  void commit(nlohmann::json fields);

  // The manifest of `stem`.json; Error where the file beside it is damaged.
  static nlohmann::json check(const std::filesystem::path& stem);

 private:
  std::filesystem::path stem_;
  AtomicFile file_;
  std::size_t bytes_ = 0;
  std::string hash_;
};

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

  // Removes all.
  void clear();

 private:
  std::vector<int64_t> steps() const;
  void remove_oldest() const;

  std::filesystem::path directory_;
  int64_t keep_;
  std::thread writer_;
  std::exception_ptr failure_;
};

}  // namespace cfaa
