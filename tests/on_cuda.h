#pragma once

// For tests of the GPU itself: skipped where the build has the device `cuda` and the machine has
// none. Only where CFAA_HAS_CUDA.

#include <gtest/gtest.h>

#include <memory>

#include "cuda/device.h"
#include "host/device/make_context.h"
#include "tests/on_device.h"

namespace cfaa::test {

class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = cuda::why_unavailable();
    if (!missing.empty()) GTEST_SKIP() << missing;
    context_ = make_context("cuda", {.threads = 2, .seed = 1});
  }
  Context& context() { return *context_; }
  cuda::Device& device() { return cuda::device_of(*context_); }

 private:
  std::unique_ptr<Context> context_;
};

}  // namespace cfaa::test
