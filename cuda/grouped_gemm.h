#pragma once

// Several matrix products of different extents in one launch:
//
//   D_g = op(A_g) op(B_g) + beta C_g,  or relu of that
//
// by CUTLASS's grouped GEMM: float in fp32 on the ordinary cores, or in TF32 on tensor cores. The
// device schedules the tiles itself and the problems are written to device memory by a kernel, so
// that nothing waits for the host and the launch may be captured in a graph. double, which exists
// for gradient checks, and the emulated device take a plain kernel over the same packed problems.

#include <cstdint>
#include <span>

#include "cuda/blas.h"
#include "cuda/device.h"

namespace cfaa::cuda {

inline constexpr int kMaxGroup = 4;

// Row-major; `ld` is the distance between the rows of the matrix as it is stored.
template <class T>
struct GemmProblem {
  int64_t m, n, k;
  const T* a;  // op(A) (m, k)
  int64_t lda;
  const T* b;  // op(B) (k, n)
  int64_t ldb;
  const T* c;   // (m, n), may be d; with ldc = 0 one row of n for all: a bias
  int64_t ldc;  // not read when beta = 0
  T* d;         // (m, n)
  int64_t ldd;
};

struct GroupedEpilogue {
  bool relu = false;
  double beta = 0;
};

// Not both operands may be transposed. TF32 needs extents and addresses of whole 16 bytes; where a
// problem has others, the group runs in fp32.
template <class T>
void grouped_gemm(Context& context, Transpose ta, Transpose tb,
                  std::span<const GemmProblem<T>> problems, GroupedEpilogue epilogue,
                  MathMode math);

}  // namespace cfaa::cuda
