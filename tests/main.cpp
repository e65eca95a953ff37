// GoogleTest's main, with the matrix kernels that the program would use.

#include <gtest/gtest.h>

#include "host/cpu/blas_kernels.h"

int main(int argc, char** argv) {
  cfaa::cpu::restart_with_better_blas_kernels(argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
