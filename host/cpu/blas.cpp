#include "host/cpu/blas.h"

#include <cblas.h>
#include <lapacke.h>

#include <vector>

namespace cfaa::cpu {
namespace {

CBLAS_TRANSPOSE flag(Transpose t) {
  return t == Transpose::yes ? CblasTrans : CblasNoTrans;
}

template <class T>
void mirror_lower(int64_t n, T* a, int64_t lda) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) a[j * lda + i] = a[i * lda + j];
  }
}

// A row-major lower triangle is LAPACK's column-major upper one.
constexpr char kRowMajorLower = 'U';

}  // namespace

void use_one_blas_thread() {
  openblas_set_num_threads(1);
}

void gemm(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, double alpha,
          const double* a, int64_t lda, const double* b, int64_t ldb, double beta, double* c,
          int64_t ldc) {
  cblas_dgemm(CblasRowMajor, flag(ta), flag(tb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  cblas_sgemm(CblasRowMajor, flag(ta), flag(tb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

int cholesky(int64_t n, double* a, int64_t lda) {
  return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, kRowMajorLower, n, a, lda);
}

int cholesky(int64_t n, float* a, int64_t lda) {
  return LAPACKE_spotrf_work(LAPACK_COL_MAJOR, kRowMajorLower, n, a, lda);
}

int inverse_from_cholesky(int64_t n, double* c, int64_t ldc) {
  const int info = LAPACKE_dpotri_work(LAPACK_COL_MAJOR, kRowMajorLower, n, c, ldc);
  mirror_lower(n, c, ldc);
  return info;
}

int inverse_from_cholesky(int64_t n, float* c, int64_t ldc) {
  const int info = LAPACKE_spotri_work(LAPACK_COL_MAJOR, kRowMajorLower, n, c, ldc);
  mirror_lower(n, c, ldc);
  return info;
}

int eigen_symmetric(int64_t n, double* a, int64_t lda, double* values) {
  return LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', kRowMajorLower, n, a, lda, values);
}

int eigen_symmetric(int64_t n, float* a, int64_t lda, float* values) {
  return LAPACKE_ssyevd(LAPACK_COL_MAJOR, 'V', kRowMajorLower, n, a, lda, values);
}

}  // namespace cfaa::cpu
