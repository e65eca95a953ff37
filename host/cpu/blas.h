#pragma once

// OpenBLAS and LAPACK in row-major terms, overloaded on the scalar. Each call runs on the calling
// thread: parallelism is between problems, or between blocks of rows, by parallel_for.

#include <cstdint>

namespace cfaa::cpu {

// OpenBLAS starts threads of its own unless told not to; they would fight ours. Idempotent.
void use_one_blas_thread();

enum class Transpose { no, yes };

// c = alpha op(a) op(b) + beta c, op(a) (m, k), op(b) (k, n), c (m, n), all row-major.
void gemm(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, double alpha,
          const double* a, int64_t lda, const double* b, int64_t ldb, double beta, double* c,
          int64_t ldc);
void gemm(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

// For symmetric matrices row- and column-major are the same but for which triangle is meant. Here
// "lower" is the row-major lower triangle. Each returns LAPACK's info: 0 is success.

// a (n, n) = C C' with C lower triangular; the strict upper triangle keeps its content.
int cholesky(int64_t n, double* a, int64_t lda);
int cholesky(int64_t n, float* a, int64_t lda);

// From cholesky's C, the whole symmetric inverse of a, both triangles written.
int inverse_from_cholesky(int64_t n, double* c, int64_t ldc);
int inverse_from_cholesky(int64_t n, float* c, int64_t ldc);

// a (n, n) symmetric, destroyed: on return row j of `a` is the eigenvector of values[j], ascending.
int eigen_symmetric(int64_t n, double* a, int64_t lda, double* values);
int eigen_symmetric(int64_t n, float* a, int64_t lda, float* values);

}  // namespace cfaa::cpu
