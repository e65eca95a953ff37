#pragma once

// OpenBLAS and LAPACK in row-major terms, overloaded on the scalar. Each call runs on the calling
// thread: parallelism is between problems, or between blocks of rows, by parallel_for. Nothing is
// allocated; where LAPACK needs scratch, the caller brings it.

#include <cstdint>

namespace cfaa::cpu {

// OpenBLAS starts threads of its own unless told not to; they would fight ours. Idempotent.
void use_one_blas_thread();

enum class Transpose { no, yes };
enum class Triangle { lower, upper };  // of the row-major matrix
enum class Side { left, right };

// c = alpha op(a) op(b) + beta c, op(a) (m, k), op(b) (k, n), c (m, n), all row-major.
void gemm(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, double alpha,
          const double* a, int64_t lda, const double* b, int64_t ldb, double beta, double* c,
          int64_t ldc);
void gemm(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

// One triangle of c (n, n) = alpha op(a) op(a)' + beta c, op(a) (n, k): half the work of gemm.
void syrk(Triangle triangle, Transpose t, int64_t n, int64_t k, double alpha, const double* a,
          int64_t lda, double beta, double* c, int64_t ldc);
void syrk(Triangle triangle, Transpose t, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, float beta, float* c, int64_t ldc);

// b (m, n) = alpha op(a) b or alpha b op(a), with a triangular: the other triangle is not read.
void trmm(Side side, Triangle triangle, Transpose ta, int64_t m, int64_t n, double alpha,
          const double* a, int64_t lda, double* b, int64_t ldb);
void trmm(Side side, Triangle triangle, Transpose ta, int64_t m, int64_t n, float alpha,
          const float* a, int64_t lda, float* b, int64_t ldb);

// sum_i a_i b_i of n adjacent elements, added up in double, in the same order on every call.
double dot(int64_t n, const double* a, const double* b);
double dot(int64_t n, const float* a, const float* b);

// The strict upper triangle of a (n, n) becomes the transpose of the strict lower one.
void mirror_lower(int64_t n, double* a, int64_t lda);
void mirror_lower(int64_t n, float* a, int64_t lda);

// Each of the following returns LAPACK's info: 0 is success.

// a (n, n) = C C' with C lower triangular, from and in the lower triangle; the strict upper
// triangle keeps its content.
int cholesky(int64_t n, double* a, int64_t lda);
int cholesky(int64_t n, float* a, int64_t lda);

// The lower triangular c (n, n) becomes its inverse; the strict upper triangle keeps its content.
int inverse_of_lower(int64_t n, double* c, int64_t ldc);
int inverse_of_lower(int64_t n, float* c, int64_t ldc);

// From cholesky's C, the whole symmetric inverse of a, both triangles written.
int inverse_from_cholesky(int64_t n, double* c, int64_t ldc);
int inverse_from_cholesky(int64_t n, float* c, int64_t ldc);

// values (n), ascending, of a (n, n) symmetric, its lower triangle given; row j of a becomes the
// eigenvector of values[j]. Allocates its scratch: for small problems outside of a step.
int eigen_symmetric(int64_t n, double* a, int64_t lda, double* values);

// a (n, n) symmetric, its upper triangle given, = Q T Q' with T tridiagonal: diagonal (n) and
// off_diagonal (n - 1). Q stays in a's upper triangle and tau (n - 1), for apply_tridiagonal_basis.
// `work` holds tridiagonal_work(n) elements.
int64_t tridiagonal_work(int64_t n);
int tridiagonal(int64_t n, double* a, int64_t lda, double* diagonal, double* off_diagonal,
                double* tau, double* work);

// b (n, n) = b Q' with the Q of `tridiagonal`.
int apply_tridiagonal_basis(int64_t n, const double* a, int64_t lda, const double* tau, double* b,
                            int64_t ldb, double* work);

}  // namespace cfaa::cpu
