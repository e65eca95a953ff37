#pragma once

// Numbers to work on, the same for the tests, the gradient checks and the bench.

#include <cstdint>
#include <vector>

#include "host/core/tensor.h"

namespace cfaa::reference {

// Deterministic normal numbers: mean + spread * n, in row-major order.
template <class T>
std::vector<T> normal(int64_t count, uint64_t seed, double mean = 0, double spread = 1);

// A (rows, cols) matrix on the device whose rows lie `padding` elements further apart than needed;
// the padding is NaN, so that an op which reads it shows.
template <class T>
class PaddedMatrix {
 public:
  PaddedMatrix(Context& context, int64_t rows, int64_t cols, const std::vector<T>& values,
               int64_t padding = 0);
  MatrixView<T> view() const;
  std::vector<T> to_host() const;  // without the padding
  void fill_zero() { storage_.fill_zero(); }

 private:
  int64_t rows_, cols_, padding_;
  Tensor<T, 2> storage_;
};

}  // namespace cfaa::reference
