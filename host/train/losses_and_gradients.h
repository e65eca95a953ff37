#pragma once

// The losses and gradients of a step, taken in front of its update: what two ways of running the
// same step are compared by, bit by bit.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "host/model/step_observer.h"

namespace cfaa {

struct NamedBytes {
  std::string name;
  std::vector<std::byte> bytes;
};

// "" where both hold the same bits; otherwise the name of the first array that differs.
std::string first_difference(const std::vector<NamedBytes>& a, const std::vector<NamedBytes>& b);

// The array in which two ways of computing the same step differ most.
struct Deviation {
  std::string name;
  double relative = 0;    // |a - b|_2 / |b|_2
  bool tolerable = true;  // 2e-4 for every loss and 2e-3 for every gradient
};
template <class T>
Deviation largest_deviation(const std::vector<NamedBytes>& a, const std::vector<NamedBytes>& b);

// Notes where the arrays of a step are, without waiting for the device, and calls `before_update`
// when all of them are computed. The step may be one that is captured.
template <class T>
class LossesAndGradients final : public StepObserver<T> {
 public:
  LossesAndGradients(Parameters<T>& parameters, std::function<void()> before_update)
      : parameters_(parameters), before_update_(std::move(before_update)) {}

  // The step that is watched ends there.
  void stop_before_update(bool stop) { stops_ = stop; }

  bool waits() const override { return false; }
  bool updates() const override { return !stops_; }
  void part_done(std::string_view part, const StepArrays<T>& arrays) override;

  // What the arrays hold now. Waits for the device.
  std::vector<NamedBytes> read(Context& context) const;

 private:
  struct Array {
    std::string name;
    MatrixView<const T> values;
    const int32_t* rows = nullptr;  // on the device: how many rows of `values` were written
  };

  Parameters<T>& parameters_;
  std::function<void()> before_update_;
  bool stops_ = false;
  std::vector<Array> arrays_;
};

}  // namespace cfaa
