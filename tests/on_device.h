#pragma once

// A test of an op has one body and runs on every device of the build:
//
//   class Sinkhorn : public OnDevice {};
//   CFAA_TEST_ON_DEVICES(Sinkhorn);
//   TEST_P(Sinkhorn, PlanHasUniformMarginals) { Context& context = this->context(); ... }

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/reference/inputs.h"
#include "host/core/context.h"
#include "host/core/tensor.h"

namespace cfaa::test {

// Inputs and references stand in bench/reference: the bench works on them too.
using namespace reference;

// "cpu", and "cuda" where the build has it and a device (real or emulated) is there.
const std::vector<std::string>& devices();

class OnDevice : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  Context& context() { return *context_; }

 private:
  std::unique_ptr<Context> context_;
};

}  // namespace cfaa::test

#define CFAA_TEST_ON_DEVICES(Suite)                                             \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(::cfaa::test::devices()), \
                           [](const auto& device) { return device.param; })
