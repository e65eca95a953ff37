#include "host/cpu/blas_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/program.h"

namespace cfaa::test {
namespace {

// tests/main.cpp has started this program again where OpenBLAS had chosen old ones.
TEST(BlasKernels, AreNotOlderThanTheProcessor) {
  EXPECT_EQ(cpu::better_blas_kernels(), "");
}

TEST(BlasKernels, AreLeftAsTheUserChoseThem) {
  setenv("OPENBLAS_CORETYPE", "Prescott", 1);
  EXPECT_EQ(cpu::better_blas_kernels(), "");
  EXPECT_EQ(run_program("--version").code, 0);
  unsetenv("OPENBLAS_CORETYPE");
}

}  // namespace
}  // namespace cfaa::test
