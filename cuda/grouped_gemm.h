#pragma once

// Several matrix products of different extents in one launch:
//
//   D_g = op(A_g) op(B_g) + beta C_g,  or relu of that
//
// by CUTLASS's grouped GEMM: float in fp32 on the ordinary cores, or in TF32 or bf16 on tensor
// cores. The device schedules the tiles itself and the problems are written to device memory by a
// kernel, so that nothing waits for the host and the launch may be captured in a graph. double,
// which exists for gradient checks, and the emulated device take a plain kernel over the same
// packed problems, which rounds factors as tensor cores see them.

#include <span>

#include "cuda/blas.h"
#include "cuda/device.h"
#include "cuda/packed_group.h"

namespace cfaa::cuda {

// Not both operands may be transposed. Tensor cores want extents and addresses of whole 16 bytes;
// where a problem has others, the group runs in fp32.
template <class T>
void grouped_gemm(Context& context, Transpose ta, Transpose tb,
                  std::span<const GemmProblem<T>> problems, GroupedEpilogue epilogue,
                  MathMode math);

}  // namespace cfaa::cuda
