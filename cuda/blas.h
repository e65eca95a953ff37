#pragma once

// cuBLAS in row-major terms, overloaded on the scalar, on the Context's stream. Shapes are checked
// as the caller thinks of them and only then turned into cuBLAS's column-major ones: a row-major
// matrix is the column-major transpose, so C = AB becomes C' = B'A' with the operands swapped.
//
// float multiplies in fp32 unless the caller asks for TF32 (10 bits of mantissa); double is double.

#include <cstdint>

#include "cuda/device.h"
#include "host/core/math_mode.h"
#include "host/core/view.h"

namespace cfaa::cuda {

enum class Transpose { no, yes };

// c = alpha op(a) op(b) + beta c. The columns of each row are adjacent; rows may be padded. With
// beta = 0 what `c` held is not read.
template <class T>
void gemm(Device& device, Transpose ta, Transpose tb, double alpha, MatrixView<const T> a,
          MatrixView<const T> b, double beta, MatrixView<T> c, MathMode math = MathMode::fp32);

// The same for each problem of a batch, in one launch: a (S, ...), b (S, ...), c (S, m, n). A
// stride of 0 between problems shares an operand.
template <class T>
void gemm(Device& device, Transpose ta, Transpose tb, double alpha, View<const T, 3> a,
          View<const T, 3> b, double beta, View<T, 3> c, MathMode math = MathMode::fp32);

// Y = C^-1 Y for each problem of a batch: C (n, n) lower triangular, rows `ld_lower` apart, Y (n,
// m) with rows `ld_rhs` apart. `lower` and `rhs` are arrays of `batch` pointers in device memory.
template <class T>
void solve_lower_batched(Device& device, int64_t n, int64_t m, const T* const* lower,
                         int64_t ld_lower, T* const* rhs, int64_t ld_rhs, int64_t batch);

}  // namespace cfaa::cuda
