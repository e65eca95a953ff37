#include "host/cpu/blas.h"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>

namespace cfaa::cpu {
namespace {

CBLAS_TRANSPOSE flag(Transpose t) {
  return t == Transpose::yes ? CblasTrans : CblasNoTrans;
}
CBLAS_UPLO flag(Triangle t) {
  return t == Triangle::lower ? CblasLower : CblasUpper;
}
CBLAS_SIDE flag(Side s) {
  return s == Side::left ? CblasLeft : CblasRight;
}

// A row-major triangle is LAPACK's other, column-major one.
constexpr char kRowMajorLower = 'U';
constexpr char kRowMajorUpper = 'L';

int triangular_inverse(int64_t n, double* c, int64_t ldc) {
  return LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, kRowMajorLower, 'N', n, c, ldc);
}
int triangular_inverse(int64_t n, float* c, int64_t ldc) {
  return LAPACKE_strtri_work(LAPACK_COL_MAJOR, kRowMajorLower, 'N', n, c, ldc);
}
int transpose_times_self(int64_t n, double* c, int64_t ldc) {
  return LAPACKE_dlauum_work(LAPACK_COL_MAJOR, kRowMajorLower, n, c, ldc);
}
int transpose_times_self(int64_t n, float* c, int64_t ldc) {
  return LAPACKE_slauum_work(LAPACK_COL_MAJOR, kRowMajorLower, n, c, ldc);
}

// [P 0; Q R]^-1 = [P^-1 0; -R^-1 Q P^-1  R^-1]. OpenBLAS's own trtri is three times slower on one
// thread at n = 300, and as fast only in the smallest blocks.
template <class T>
int inverse_of_lower_by_halves(int64_t n, T* c, int64_t ldc) {
  constexpr int64_t kSmallest = 48;
  if (n <= kSmallest) return triangular_inverse(n, c, ldc);
  const int64_t head = (n / 2 + 7) / 8 * 8, tail = n - head;
  T* below = c + head * ldc;
  T* last = below + head;
  if (const int info = inverse_of_lower_by_halves(head, c, ldc)) return info;
  if (const int info = inverse_of_lower_by_halves(tail, last, ldc)) {
    return info + static_cast<int>(head);
  }
  trmm(Side::left, Triangle::lower, Transpose::no, tail, head, T(-1), last, ldc, below, ldc);
  trmm(Side::right, Triangle::lower, Transpose::no, tail, head, T(1), c, ldc, below, ldc);
  return 0;
}

template <class T>
int inverse_by_halves(int64_t n, T* c, int64_t ldc) {
  if (const int info = inverse_of_lower_by_halves(n, c, ldc)) return info;
  const int info = transpose_times_self(n, c, ldc);
  mirror_lower(n, c, ldc);
  return info;
}

// Tile by tile, so that the columns written stay in the first-level cache.
template <class T>
void mirror(int64_t n, T* a, int64_t lda) {
  constexpr int64_t kTile = 32;
  for (int64_t i0 = 0; i0 < n; i0 += kTile) {
    for (int64_t j0 = 0; j0 <= i0; j0 += kTile) {
      for (int64_t j = j0; j < std::min(j0 + kTile, n); ++j) {
        for (int64_t i = std::max(i0, j + 1); i < std::min(i0 + kTile, n); ++i) {
          a[j * lda + i] = a[i * lda + j];
        }
      }
    }
  }
}

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

void syrk(Triangle triangle, Transpose t, int64_t n, int64_t k, double alpha, const double* a,
          int64_t lda, double beta, double* c, int64_t ldc) {
  cblas_dsyrk(CblasRowMajor, flag(triangle), flag(t), n, k, alpha, a, lda, beta, c, ldc);
}

void syrk(Triangle triangle, Transpose t, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, float beta, float* c, int64_t ldc) {
  cblas_ssyrk(CblasRowMajor, flag(triangle), flag(t), n, k, alpha, a, lda, beta, c, ldc);
}

void trmm(Side side, Triangle triangle, Transpose ta, int64_t m, int64_t n, double alpha,
          const double* a, int64_t lda, double* b, int64_t ldb) {
  cblas_dtrmm(CblasRowMajor, flag(side), flag(triangle), flag(ta), CblasNonUnit, m, n, alpha, a,
              lda, b, ldb);
}

void trmm(Side side, Triangle triangle, Transpose ta, int64_t m, int64_t n, float alpha,
          const float* a, int64_t lda, float* b, int64_t ldb) {
  cblas_strmm(CblasRowMajor, flag(side), flag(triangle), flag(ta), CblasNonUnit, m, n, alpha, a,
              lda, b, ldb);
}

double dot(int64_t n, const double* a, const double* b) {
  return cblas_ddot(n, a, 1, b, 1);
}
double dot(int64_t n, const float* a, const float* b) {
  return cblas_dsdot(n, a, 1, b, 1);
}

void mirror_lower(int64_t n, double* a, int64_t lda) {
  mirror(n, a, lda);
}
void mirror_lower(int64_t n, float* a, int64_t lda) {
  mirror(n, a, lda);
}

int cholesky(int64_t n, double* a, int64_t lda) {
  return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, kRowMajorLower, n, a, lda);
}

int cholesky(int64_t n, float* a, int64_t lda) {
  return LAPACKE_spotrf_work(LAPACK_COL_MAJOR, kRowMajorLower, n, a, lda);
}

int inverse_of_lower(int64_t n, double* c, int64_t ldc) {
  return inverse_of_lower_by_halves(n, c, ldc);
}
int inverse_of_lower(int64_t n, float* c, int64_t ldc) {
  return inverse_of_lower_by_halves(n, c, ldc);
}

int inverse_from_cholesky(int64_t n, double* c, int64_t ldc) {
  return inverse_by_halves(n, c, ldc);
}
int inverse_from_cholesky(int64_t n, float* c, int64_t ldc) {
  return inverse_by_halves(n, c, ldc);
}

int eigen_symmetric(int64_t n, double* a, int64_t lda, double* values) {
  use_one_blas_thread();
  return LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', kRowMajorLower, n, a, lda, values);
}

// LAPACK works in panels of 32 to 64 columns; the constant is dormtr's own table of panel factors.
int64_t tridiagonal_work(int64_t n) {
  return 64 * n + 65 * 64;
}

int tridiagonal(int64_t n, double* a, int64_t lda, double* diagonal, double* off_diagonal,
                double* tau, double* work) {
  return LAPACKE_dsytrd_work(LAPACK_COL_MAJOR, kRowMajorUpper, n, a, lda, diagonal, off_diagonal,
                             tau, work, tridiagonal_work(n));
}

// Row-major b Q' is column-major Q b'.
int apply_tridiagonal_basis(int64_t n, const double* a, int64_t lda, const double* tau, double* b,
                            int64_t ldb, double* work) {
  return LAPACKE_dormtr_work(LAPACK_COL_MAJOR, 'L', kRowMajorUpper, 'N', n, n, a, lda, tau, b, ldb,
                             work, tridiagonal_work(n));
}

}  // namespace cfaa::cpu
