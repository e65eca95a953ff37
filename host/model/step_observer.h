#pragma once

// Watching a step from outside: what it has computed after each of its parts. Unless the observer
// says otherwise, a step that is watched waits for the device after every part.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/model/batch.h"
#include "host/model/encoder.h"
#include "host/model/loss.h"
#include "host/model/parameters.h"

namespace cfaa {

// The arrays of a step, on the device; empty until their part is done.
template <class T>
struct StepArrays {
  std::size_t part = 0;                              // of the step's parts that this rank computes
  std::vector<std::unique_ptr<EncoderRun<T>>> runs;  // of the domains trained on: user, item
  MatrixView<T> z, dz;                               // (all rows, 2 D), users in the left half
  VectorView<T> score, dscore;                       // (all rows)
  VectorView<T> score_loss;                          // (2) L_C of the source and of the target
  VectorView<T> loss;                                // (1) of the loss whose part was done last
  // Its own: (4 R, D), source and target users, then items; (1, all rows) of scores.
  MatrixView<T> loss_gradient;
  LossRows loss_rows = LossRows::interactions;
  std::vector<TableGradient<T>> tables;  // the layers' gradients are the Parameters'
};

template <class T>
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // The parts in their order: "towers" (inputs and forward), the losses of scores by their names,
  // "scorer" (forward, L_C, backward), the other losses, "backward" (of the towers), "update".
  virtual void part_done(std::string_view part, const StepArrays<T>& arrays) = 0;

  // Whether the device has computed a part when it is said to be done, or only been told to.
  virtual bool waits() const { return true; }
  // false: the step ends in front of its update.
  virtual bool updates() const { return true; }
};

// Shows every array of a step by the names of docs/training.md. `rows` are the rows of a table's
// gradient, empty elsewhere.
template <class T>
class NamedArrays final : public StepObserver<T> {
 public:
  using Show = std::function<void(const std::string& name, MatrixView<const T> array,
                                  VectorView<const int32_t> rows)>;
  NamedArrays(Parameters<T>& parameters, Show show)
      : parameters_(parameters), show_(std::move(show)) {}

  void part_done(std::string_view part, const StepArrays<T>& arrays) override;

 private:
  Parameters<T>& parameters_;
  Show show_;
};

}  // namespace cfaa
