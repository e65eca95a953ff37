#include "cuda/blas.h"

#include <limits>

#include "cuda/check.h"
#include "cuda/graph.h"
#include "host/core/error.h"

namespace cfaa::cuda {
namespace {

cublasOperation_t flag(Transpose t) {
  return t == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N;
}

int to_int(int64_t extent) {
  CFAA_ASSERT(extent >= 0 && extent <= std::numeric_limits<int>::max());
  return static_cast<int>(extent);
}

// The distance between rows of a row-major matrix: cuBLAS's leading dimension.
template <class T>
int leading(const MatrixView<T>& matrix) {
  CFAA_ASSERT(matrix.stride[1] == 1 || matrix.cols() == 1);
  if (matrix.rows() == 1) return to_int(matrix.cols());
  CFAA_ASSERT(matrix.stride[0] >= matrix.cols());
  return to_int(matrix.stride[0]);
}

// m, n and k of op(a) op(b) = c, in row-major terms.
struct Extents {
  int m, n, k;
};
template <class T>
Extents extents(Transpose ta, Transpose tb, const MatrixView<const T>& a,
                const MatrixView<const T>& b, const MatrixView<T>& c) {
  const int64_t m = ta == Transpose::no ? a.rows() : a.cols();
  const int64_t k = ta == Transpose::no ? a.cols() : a.rows();
  const int64_t kb = tb == Transpose::no ? b.rows() : b.cols();
  const int64_t n = tb == Transpose::no ? b.cols() : b.rows();
  CFAA_ASSERT(k == kb && c.rows() == m && c.cols() == n);
  return {to_int(m), to_int(n), to_int(k)};
}

// cuBLAS keeps a math mode on its handle; it is fp32 there but for the length of one call.
class WithMathMode {
 public:
  WithMathMode(cublasHandle_t blas, MathMode mode) : blas_(blas), changed_(mode == MathMode::tf32) {
    if (changed_) CFAA_CUDA_CHECK(cublasSetMathMode(blas_, CUBLAS_TF32_TENSOR_OP_MATH));
  }
  ~WithMathMode() {
    if (changed_) cublasSetMathMode(blas_, CUBLAS_DEFAULT_MATH);
  }
  WithMathMode(const WithMathMode&) = delete;
  WithMathMode& operator=(const WithMathMode&) = delete;

 private:
  cublasHandle_t blas_;
  bool changed_;
};

cublasStatus_t gemm_call(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                         int n, int k, float alpha, const float* a, int lda, int64_t step_a,
                         const float* b, int ldb, int64_t step_b, float beta, float* c, int ldc,
                         int64_t step_c, int batch) {
  return cublasSgemmStridedBatched(blas, op_a, op_b, m, n, k, &alpha, a, lda, step_a, b, ldb,
                                   step_b, &beta, c, ldc, step_c, batch);
}

cublasStatus_t gemm_call(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                         int n, int k, double alpha, const double* a, int lda, int64_t step_a,
                         const double* b, int ldb, int64_t step_b, double beta, double* c, int ldc,
                         int64_t step_c, int batch) {
  return cublasDgemmStridedBatched(blas, op_a, op_b, m, n, k, &alpha, a, lda, step_a, b, ldb,
                                   step_b, &beta, c, ldc, step_c, batch);
}

cublasStatus_t gemm_call(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                         int n, int k, float alpha, const float* a, int lda, const float* b,
                         int ldb, float beta, float* c, int ldc) {
  return cublasSgemm(blas, op_a, op_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}

cublasStatus_t gemm_call(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                         int n, int k, double alpha, const double* a, int lda, const double* b,
                         int ldb, double beta, double* c, int ldc) {
  return cublasDgemm(blas, op_a, op_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}

cublasStatus_t trsm_call(cublasHandle_t blas, cublasSideMode_t side, cublasFillMode_t uplo,
                         cublasOperation_t op, int m, int n, const float* const* a, int lda,
                         float* const* b, int ldb, int batch) {
  const float one = 1;
  return cublasStrsmBatched(blas, side, uplo, op, CUBLAS_DIAG_NON_UNIT, m, n, &one, a, lda, b, ldb,
                            batch);
}

cublasStatus_t trsm_call(cublasHandle_t blas, cublasSideMode_t side, cublasFillMode_t uplo,
                         cublasOperation_t op, int m, int n, const double* const* a, int lda,
                         double* const* b, int ldb, int batch) {
  const double one = 1;
  return cublasDtrsmBatched(blas, side, uplo, op, CUBLAS_DIAG_NON_UNIT, m, n, &one, a, lda, b, ldb,
                            batch);
}

}  // namespace

template <class T>
void gemm(Device& device, Transpose ta, Transpose tb, double alpha, MatrixView<const T> a,
          MatrixView<const T> b, double beta, MatrixView<T> c, MathMode math) {
  const Extents e = extents<T>(ta, tb, a, b, c);
  const int lda = leading(a), ldb = leading(b), ldc = leading(c);
  library_call(device, "cuBLAS's gemm", Capturing::allowed, [=, blas = device.blas()] {
    const WithMathMode mode(blas, math);
    CFAA_CUDA_CHECK(gemm_call(blas, flag(tb), flag(ta), e.n, e.m, e.k, static_cast<T>(alpha),
                              b.data, ldb, a.data, lda, static_cast<T>(beta), c.data, ldc));
  });
}

template <class T>
void gemm(Device& device, Transpose ta, Transpose tb, double alpha, View<const T, 3> a,
          View<const T, 3> b, double beta, View<T, 3> c, MathMode math) {
  const int64_t batch = c.shape[0];
  CFAA_ASSERT(batch >= 1 && a.shape[0] == batch && b.shape[0] == batch);
  const Extents e = extents<T>(ta, tb, a[0], b[0], c[0]);
  const int lda = leading(a[0]), ldb = leading(b[0]), ldc = leading(c[0]);
  library_call(
      device, "cuBLAS's gemmStridedBatched", Capturing::allowed, [=, blas = device.blas()] {
        const WithMathMode mode(blas, math);
        CFAA_CUDA_CHECK(gemm_call(blas, flag(tb), flag(ta), e.n, e.m, e.k, static_cast<T>(alpha),
                                  b.data, ldb, b.stride[0], a.data, lda, a.stride[0],
                                  static_cast<T>(beta), c.data, ldc, c.stride[0], to_int(batch)));
      });
}

// Row-major C Y = Y0 read column-major is Y' C' = Y0': C' is upper triangular, on the right.
template <class T>
void solve_lower_batched(Device& device, int64_t n, int64_t m, const T* const* lower,
                         int64_t ld_lower, T* const* rhs, int64_t ld_rhs, int64_t batch) {
  CFAA_ASSERT(ld_lower >= n && ld_rhs >= m && batch >= 1);
  library_call(device, "cuBLAS's trsmBatched", Capturing::allowed, [=, blas = device.blas()] {
    CFAA_CUDA_CHECK(trsm_call(blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                              to_int(m), to_int(n), lower, to_int(ld_lower), rhs, to_int(ld_rhs),
                              to_int(batch)));
  });
}

#define CFAA_INSTANTIATE(T)                                                                        \
  template void gemm<T>(Device&, Transpose, Transpose, double, MatrixView<const T>,                \
                        MatrixView<const T>, double, MatrixView<T>, MathMode);                     \
  template void gemm<T>(Device&, Transpose, Transpose, double, View<const T, 3>, View<const T, 3>, \
                        double, View<T, 3>, MathMode);                                             \
  template void solve_lower_batched<T>(Device&, int64_t, int64_t, const T* const*, int64_t,        \
                                       T* const*, int64_t, int64_t);
CFAA_INSTANTIATE(float)
CFAA_INSTANTIATE(double)
#undef CFAA_INSTANTIATE

}  // namespace cfaa::cuda
