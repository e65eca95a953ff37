#pragma once

// A test of an op has one body and runs on every device of the build:
//
//   class Sinkhorn : public OnDevice {};
//   CFAA_TEST_ON_DEVICES(Sinkhorn);
//   TEST_P(Sinkhorn, PlanHasUniformMarginals) { Context& context = this->context(); ... }

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "host/core/context.h"
#include "host/core/tensor.h"

namespace cfaa::test {

// "cpu", and "cuda" where the build has it and a device (real or emulated) is there.
std::vector<std::string> devices();

class OnDevice : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  Context& context() { return *context_; }

 private:
  std::unique_ptr<Context> context_;
};

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

 private:
  int64_t rows_, cols_, padding_;
  Tensor<T, 2> storage_;
};

}  // namespace cfaa::test

#define CFAA_TEST_ON_DEVICES(Suite)                                             \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(::cfaa::test::devices()), \
                           [](const auto& device) { return device.param; })
