// cuBLAS on the host's BLAS.

#include <cblas.h>

#include <set>
#include <type_traits>

#include "cublas_v2.h"
#include "library.h"

struct cublasContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
};

namespace emulator {
namespace {

std::set<cublasHandle_t>& handles() {
  static auto* instance = new std::set<cublasHandle_t>;
  return *instance;
}

// Host BLAS by type of scalar.
#define CFAA_BLAS(name)                        \
  template <typename T, typename... Arguments> \
  auto name(Arguments... arguments) {          \
    if constexpr (std::is_same_v<T, float>)    \
      return cblas_s##name(arguments...);      \
    else                                       \
      return cblas_d##name(arguments...);      \
  }
CFAA_BLAS(gemm)
CFAA_BLAS(syrk)
CFAA_BLAS(symm)
CFAA_BLAS(trmm)
CFAA_BLAS(trsm)
CFAA_BLAS(gemv)
CFAA_BLAS(dot)
CFAA_BLAS(nrm2)
CFAA_BLAS(asum)
CFAA_BLAS(axpy)
CFAA_BLAS(scal)
CFAA_BLAS(copy)
#undef CFAA_BLAS

CBLAS_TRANSPOSE host(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}
CBLAS_UPLO host(cublasFillMode_t uplo) {
  return uplo == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper;
}
CBLAS_SIDE host(cublasSideMode_t side) {
  return side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight;
}
CBLAS_DIAG host(cublasDiagType_t diag) {
  return diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit;
}

// alpha or beta: read now in host mode, when the call runs in device mode.
template <typename T>
struct Scalar {
  const T* device = nullptr;
  T value = 0;
  T get() const { return device ? *device : value; }
};

class BlasCall : public LibraryCall {
 public:
  BlasCall(const char* name, cublasHandle_t handle)
      : LibraryCall(name, handle->stream), handle_(handle) {}

  template <typename T>
  Scalar<T> scalar(const char* what, const T* p) {
    if (handle_->pointer_mode == CUBLAS_POINTER_MODE_HOST) {
      if (device_of(p) >= 0) {
        fail("%s: %s is device memory, but the pointer mode is host", name(), what);
      }
      return {nullptr, *p};
    }
    uses(what, p, sizeof(T));
    return {p, 0};
  }

  cublasStatus_t work(std::function<void()> run) {
    return enqueue_work(std::move(run)) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                       : CUBLAS_STATUS_EXECUTION_FAILED;
  }

 private:
  cublasHandle_t handle_;
};

// The start of every routine: a live handle, on its device, and not captured where that is refused.
cublasStatus_t begin(const char* name, cublasHandle_t handle) {
  if (handles().count(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = resolve(handle->stream);
  if (handle->stream == nullptr) {
    explain("%s: the stream of the handle was destroyed", name);
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  if (is_capturing(handle->stream) && settings().refuse_blas_capture) {
    invalidate_capture(handle->stream);
    explain("%s: refused while captured, as asked for", name);
    return CUBLAS_STATUS_INTERNAL_ERROR;
  }
  return CUBLAS_STATUS_SUCCESS;
}

#define CFAA_BEGIN(name)                                          \
  Locked locked(runtime_lock());                                  \
  if (cublasStatus_t status = begin(name, handle)) return status; \
  BlasCall call(name, handle)
#define CFAA_REQUIRE(condition) \
  if (!(condition)) return CUBLAS_STATUS_INVALID_VALUE
#define CFAA_SIZES(...) \
  CFAA_REQUIRE(call.require(non_negative({__VA_ARGS__}), "a size is negative"))

bool non_negative(std::initializer_list<long long> sizes) {
  for (long long size : sizes) {
    if (size < 0) return false;
  }
  return true;
}

template <typename T>
void gemm_unless_empty(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, T alpha,
                       const T* A, int lda, const T* B, int ldb, T beta, T* C, int ldc) {
  if (m == 0 || n == 0) return;
  gemm<T>(CblasColMajor, host(ta), host(tb), m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

template <typename T>
cublasStatus_t gemm_strided(const char* name, cublasHandle_t handle, cublasOperation_t ta,
                            cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* A,
                            int lda, long long strideA, const T* B, int ldb, long long strideB,
                            const T* beta, T* C, int ldc, long long strideC, int batch) {
  CFAA_BEGIN(name);
  CFAA_SIZES(m, n, k, batch);
  const int rows_a = ta == CUBLAS_OP_N ? m : k, columns_a = ta == CUBLAS_OP_N ? k : m;
  const int rows_b = tb == CUBLAS_OP_N ? k : n, columns_b = tb == CUBLAS_OP_N ? n : k;
  CFAA_REQUIRE(call.require_leading("A", lda, rows_a) && call.require_leading("B", ldb, rows_b) &&
               call.require_leading("C", ldc, m));
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  const auto span = [batch](std::size_t bytes, long long stride) {
    return bytes == 0 ? 0 : bytes + static_cast<std::size_t>(batch - 1) * stride * sizeof(T);
  };
  CFAA_REQUIRE(call.require(strideA >= 0 && strideB >= 0 && strideC >= 0, "a stride is negative"));
  CFAA_REQUIRE(call.require(
      batch == 1 || static_cast<std::size_t>(strideC) * sizeof(T) >= matrix_bytes<T>(m, n, ldc),
      "the results of the batch overlap: strideC is smaller than a matrix"));
  call.uses("A", A, span(matrix_bytes<T>(rows_a, columns_a, lda), strideA));
  call.uses("B", B, span(matrix_bytes<T>(rows_b, columns_b, ldb), strideB));
  call.uses("C", C, span(matrix_bytes<T>(m, n, ldc), strideC));
  const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
  return call.work([=] {
    for (int i = 0; i < batch; ++i) {
      gemm_unless_empty<T>(ta, tb, m, n, k, a.get(), A + i * strideA, lda, B + i * strideB, ldb,
                           b.get(), C + i * strideC, ldc);
    }
  });
}

template <typename T>
cublasStatus_t gemm_batched(const char* name, cublasHandle_t handle, cublasOperation_t ta,
                            cublasOperation_t tb, int m, int n, int k, const T* alpha,
                            const T* const* A, int lda, const T* const* B, int ldb, const T* beta,
                            T* const* C, int ldc, int batch) {
  CFAA_BEGIN(name);
  CFAA_SIZES(m, n, k, batch);
  const int rows_a = ta == CUBLAS_OP_N ? m : k, columns_a = ta == CUBLAS_OP_N ? k : m;
  const int rows_b = tb == CUBLAS_OP_N ? k : n, columns_b = tb == CUBLAS_OP_N ? n : k;
  CFAA_REQUIRE(call.require_leading("A", lda, rows_a) && call.require_leading("B", ldb, rows_b) &&
               call.require_leading("C", ldc, m));
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  const std::size_t array = static_cast<std::size_t>(batch) * sizeof(T*);
  call.uses("Aarray", A, array);
  call.uses("Barray", B, array);
  call.uses("Carray", C, array);
  const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
  const int device = device_of_stream(call.stream());
  return call.work([=, name = std::string(name)] {
    for (int i = 0; i < batch; ++i) {
      check_batch_matrix(name, "Aarray", i, A[i], matrix_bytes<T>(rows_a, columns_a, lda), device);
      check_batch_matrix(name, "Barray", i, B[i], matrix_bytes<T>(rows_b, columns_b, ldb), device);
      check_batch_matrix(name, "Carray", i, C[i], matrix_bytes<T>(m, n, ldc), device);
      gemm_unless_empty<T>(ta, tb, m, n, k, a.get(), A[i], lda, B[i], ldb, b.get(), C[i], ldc);
    }
  });
}

template <typename T>
cublasStatus_t do_syrk(const char* name, cublasHandle_t handle, cublasFillMode_t uplo,
                       cublasOperation_t trans, int n, int k, const T* alpha, const T* A, int lda,
                       const T* beta, T* C, int ldc) {
  CFAA_BEGIN(name);
  CFAA_SIZES(n, k);
  const int rows = trans == CUBLAS_OP_N ? n : k, columns = trans == CUBLAS_OP_N ? k : n;
  CFAA_REQUIRE(call.require_leading("A", lda, rows) && call.require_leading("C", ldc, n));
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  call.uses("A", A, matrix_bytes<T>(rows, columns, lda));
  call.uses("C", C, matrix_bytes<T>(n, n, ldc));
  const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
  return call.work([=] {
    syrk<T>(CblasColMajor, host(uplo), host(trans), n, k, a.get(), A, lda, b.get(), C, ldc);
  });
}

template <typename T>
cublasStatus_t do_geam(const char* name, cublasHandle_t handle, cublasOperation_t ta,
                       cublasOperation_t tb, int m, int n, const T* alpha, const T* A, int lda,
                       const T* beta, const T* B, int ldb, T* C, int ldc) {
  CFAA_BEGIN(name);
  CFAA_SIZES(m, n);
  const int rows_a = ta == CUBLAS_OP_N ? m : n, rows_b = tb == CUBLAS_OP_N ? m : n;
  const bool host_mode = handle->pointer_mode == CUBLAS_POINTER_MODE_HOST;
  const bool use_a = !host_mode || *alpha != 0, use_b = !host_mode || *beta != 0;
  CFAA_REQUIRE((!use_a || call.require_leading("A", lda, rows_a)) &&
               (!use_b || call.require_leading("B", ldb, rows_b)) &&
               call.require_leading("C", ldc, m));
  CFAA_REQUIRE(call.require(C != A || (ta == CUBLAS_OP_N && lda == ldc),
                            "in place on A needs no transpose and lda == ldc"));
  CFAA_REQUIRE(call.require(C != B || (tb == CUBLAS_OP_N && ldb == ldc),
                            "in place on B needs no transpose and ldb == ldc"));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  if (use_a) call.uses("A", A, matrix_bytes<T>(rows_a, m + n - rows_a, lda));
  if (use_b) call.uses("B", B, matrix_bytes<T>(rows_b, m + n - rows_b, ldb));
  call.uses("C", C, matrix_bytes<T>(m, n, ldc));
  const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
  return call.work([=] {
    const auto at = [](const T* M, int ld, cublasOperation_t op, int i, int j) {
      return op == CUBLAS_OP_N ? M[i + static_cast<long long>(j) * ld]
                               : M[j + static_cast<long long>(i) * ld];
    };
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        T value = 0;
        if (a.get() != 0) value += a.get() * at(A, lda, ta, i, j);
        if (b.get() != 0) value += b.get() * at(B, ldb, tb, i, j);
        C[i + static_cast<long long>(j) * ldc] = value;
      }
    }
  });
}

template <typename T>
cublasStatus_t do_symm(const char* name, cublasHandle_t handle, cublasSideMode_t side,
                       cublasFillMode_t uplo, int m, int n, const T* alpha, const T* A, int lda,
                       const T* B, int ldb, const T* beta, T* C, int ldc) {
  CFAA_BEGIN(name);
  CFAA_SIZES(m, n);
  const int order = side == CUBLAS_SIDE_LEFT ? m : n;
  CFAA_REQUIRE(call.require_leading("A", lda, order) && call.require_leading("B", ldb, m) &&
               call.require_leading("C", ldc, m));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  call.uses("A", A, matrix_bytes<T>(order, order, lda));
  call.uses("B", B, matrix_bytes<T>(m, n, ldb));
  call.uses("C", C, matrix_bytes<T>(m, n, ldc));
  const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
  return call.work([=] {
    symm<T>(CblasColMajor, host(side), host(uplo), m, n, a.get(), A, lda, B, ldb, b.get(), C, ldc);
  });
}

template <typename T>
cublasStatus_t do_trmm(const char* name, cublasHandle_t handle, cublasSideMode_t side,
                       cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, int m,
                       int n, const T* alpha, const T* A, int lda, const T* B, int ldb, T* C,
                       int ldc) {
  CFAA_BEGIN(name);
  CFAA_SIZES(m, n);
  const int order = side == CUBLAS_SIDE_LEFT ? m : n;
  CFAA_REQUIRE(call.require_leading("A", lda, order) && call.require_leading("B", ldb, m) &&
               call.require_leading("C", ldc, m));
  CFAA_REQUIRE(call.require(C != B || ldb == ldc, "in place on B needs ldb == ldc"));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  call.uses("A", A, matrix_bytes<T>(order, order, lda));
  call.uses("B", B, matrix_bytes<T>(m, n, ldb));
  call.uses("C", C, matrix_bytes<T>(m, n, ldc));
  const auto a = call.scalar("alpha", alpha);
  return call.work([=] {
    if (B != C) {
      for (int j = 0; j < n; ++j) {
        copy<T>(m, B + static_cast<long long>(j) * ldb, 1, C + static_cast<long long>(j) * ldc, 1);
      }
    }
    trmm<T>(CblasColMajor, host(side), host(uplo), host(trans), host(diag), m, n, a.get(), A, lda,
            C, ldc);
  });
}

template <typename T>
cublasStatus_t do_trsm(const char* name, cublasHandle_t handle, cublasSideMode_t side,
                       cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, int m,
                       int n, const T* alpha, const T* A, int lda, T* B, int ldb) {
  CFAA_BEGIN(name);
  CFAA_SIZES(m, n);
  const int order = side == CUBLAS_SIDE_LEFT ? m : n;
  CFAA_REQUIRE(call.require_leading("A", lda, order) && call.require_leading("B", ldb, m));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  call.uses("A", A, matrix_bytes<T>(order, order, lda));
  call.uses("B", B, matrix_bytes<T>(m, n, ldb));
  const auto a = call.scalar("alpha", alpha);
  return call.work([=] {
    trsm<T>(CblasColMajor, host(side), host(uplo), host(trans), host(diag), m, n, a.get(), A, lda,
            B, ldb);
  });
}

template <typename T>
cublasStatus_t trsm_batched(const char* name, cublasHandle_t handle, cublasSideMode_t side,
                            cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag,
                            int m, int n, const T* alpha, const T* const* A, int lda, T* const* B,
                            int ldb, int batch) {
  CFAA_BEGIN(name);
  CFAA_SIZES(m, n, batch);
  const int order = side == CUBLAS_SIDE_LEFT ? m : n;
  CFAA_REQUIRE(call.require_leading("A", lda, order) && call.require_leading("B", ldb, m));
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  call.uses("A", A, static_cast<std::size_t>(batch) * sizeof(T*));
  call.uses("B", B, static_cast<std::size_t>(batch) * sizeof(T*));
  const auto a = call.scalar("alpha", alpha);
  const int device = device_of_stream(call.stream());
  return call.work([=, name = std::string(name)] {
    for (int i = 0; i < batch; ++i) {
      check_batch_matrix(name, "A", i, A[i], matrix_bytes<T>(order, order, lda), device);
      check_batch_matrix(name, "B", i, B[i], matrix_bytes<T>(m, n, ldb), device);
      trsm<T>(CblasColMajor, host(side), host(uplo), host(trans), host(diag), m, n, a.get(), A[i],
              lda, B[i], ldb);
    }
  });
}

template <typename T>
cublasStatus_t do_dgmm(const char* name, cublasHandle_t handle, cublasSideMode_t mode, int m, int n,
                       const T* A, int lda, const T* x, int incx, T* C, int ldc) {
  CFAA_BEGIN(name);
  CFAA_SIZES(m, n);
  CFAA_REQUIRE(call.require_leading("A", lda, m) && call.require_leading("C", ldc, m));
  CFAA_REQUIRE(call.require(C != A || lda == ldc, "in place needs lda == ldc"));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const int length = mode == CUBLAS_SIDE_LEFT ? m : n;
  call.uses("A", A, matrix_bytes<T>(m, n, lda));
  call.uses("x", x, vector_bytes<T>(length, incx));
  call.uses("C", C, matrix_bytes<T>(m, n, ldc));
  return call.work([=] {
    const T* start = incx < 0 ? x - static_cast<long long>(length - 1) * incx : x;
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        const T factor = start[static_cast<long long>(mode == CUBLAS_SIDE_LEFT ? i : j) * incx];
        C[i + static_cast<long long>(j) * ldc] = A[i + static_cast<long long>(j) * lda] * factor;
      }
    }
  });
}

template <typename T>
cublasStatus_t do_gemv(const char* name, cublasHandle_t handle, cublasOperation_t trans, int m,
                       int n, const T* alpha, const T* A, int lda, const T* x, int incx,
                       const T* beta, T* y, int incy) {
  CFAA_BEGIN(name);
  CFAA_SIZES(m, n);
  CFAA_REQUIRE(call.require_leading("A", lda, m) &&
               call.require(incx != 0 && incy != 0, "an increment is zero"));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  call.uses("A", A, matrix_bytes<T>(m, n, lda));
  call.uses("x", x, vector_bytes<T>(trans == CUBLAS_OP_N ? n : m, incx));
  call.uses("y", y, vector_bytes<T>(trans == CUBLAS_OP_N ? m : n, incy));
  const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
  return call.work([=] {
    gemv<T>(CblasColMajor, host(trans), m, n, a.get(), A, lda, x, incx, b.get(), y, incy);
  });
}

// dot, nrm2, asum: in host mode the result is a host pointer, and cuBLAS waits for it.
template <typename T>
cublasStatus_t reduction(BlasCall& call, cublasHandle_t handle, T* result,
                         std::function<T()> compute) {
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
    call.uses("result", result, sizeof(T));
    return call.work([=] { *result = compute(); });
  }
  if (is_capturing(call.stream())) {
    invalidate_capture(call.stream());
    explain("%s: a result in host memory cannot be captured", call.name());
    return CUBLAS_STATUS_INTERNAL_ERROR;
  }
  const cudaStream_t stream = call.stream();
  const cublasStatus_t status = call.work([=] { *result = compute(); });
  if (status == CUBLAS_STATUS_SUCCESS) drain(stream);
  return status;
}

template <typename T>
cublasStatus_t do_dot(const char* name, cublasHandle_t handle, int n, const T* x, int incx,
                      const T* y, int incy, T* result) {
  CFAA_BEGIN(name);
  call.uses("x", x, vector_bytes<T>(n, incx));
  call.uses("y", y, vector_bytes<T>(n, incy));
  return reduction<T>(call, handle, result,
                      [=] { return static_cast<T>(dot<T>(n, x, incx, y, incy)); });
}

template <typename T>
cublasStatus_t do_nrm2(const char* name, cublasHandle_t handle, int n, const T* x, int incx,
                       T* result) {
  CFAA_BEGIN(name);
  call.uses("x", x, vector_bytes<T>(n, incx));
  return reduction<T>(call, handle, result, [=] { return static_cast<T>(nrm2<T>(n, x, incx)); });
}

template <typename T>
cublasStatus_t do_asum(const char* name, cublasHandle_t handle, int n, const T* x, int incx,
                       T* result) {
  CFAA_BEGIN(name);
  call.uses("x", x, vector_bytes<T>(n, incx));
  return reduction<T>(call, handle, result, [=] { return static_cast<T>(asum<T>(n, x, incx)); });
}

template <typename T>
cublasStatus_t do_axpy(const char* name, cublasHandle_t handle, int n, const T* alpha, const T* x,
                       int incx, T* y, int incy) {
  CFAA_BEGIN(name);
  call.uses("x", x, vector_bytes<T>(n, incx));
  call.uses("y", y, vector_bytes<T>(n, incy));
  const auto a = call.scalar("alpha", alpha);
  return call.work([=] { axpy<T>(n, a.get(), x, incx, y, incy); });
}

template <typename T>
cublasStatus_t do_scal(const char* name, cublasHandle_t handle, int n, const T* alpha, T* x,
                       int incx) {
  CFAA_BEGIN(name);
  call.uses("x", x, vector_bytes<T>(n, incx));
  const auto a = call.scalar("alpha", alpha);
  return call.work([=] { scal<T>(n, a.get(), x, incx); });
}

template <typename T>
cublasStatus_t do_copy(const char* name, cublasHandle_t handle, int n, const T* x, int incx, T* y,
                       int incy) {
  CFAA_BEGIN(name);
  call.uses("x", x, vector_bytes<T>(n, incx));
  call.uses("y", y, vector_bytes<T>(n, incy));
  return call.work([=] { copy<T>(n, x, incx, y, incy); });
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  Locked locked(runtime_lock());
  if (unsafe_call("cublasCreate") != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasContext;
  (*handle)->device = current_device();
  handles().insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  Locked locked(runtime_lock());
  if (handles().erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  *version = 130000;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t streamId) {
  Locked locked(runtime_lock());
  if (handles().count(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  cudaStream_t stream = resolve(streamId);
  if (stream == nullptr || device_of_stream(stream) != handle->device) {
    explain("cublasSetStream: the stream is not alive or belongs to another device");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* streamId) {
  if (handles().count(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  *streamId = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace,
                                  std::size_t workspaceSizeInBytes) {
  Locked locked(runtime_lock());
  if (handles().count(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (workspaceSizeInBytes == 0) return CUBLAS_STATUS_SUCCESS;
  const std::string why =
      why_not_device_memory(workspace, workspaceSizeInBytes, handle->device, false);
  if (!why.empty()) {
    explain("cublasSetWorkspace: the workspace %s", why.c_str());
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (handles().count(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  if (handles().count(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (handles().count(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  if (handles().count(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  *mode = handle->pointer_mode;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "an unknown status";
}
const char* cublasGetStatusString(cublasStatus_t status) {
  return cublasGetStatusName(status);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* A, cudaDataType Atype, int lda, const void* B,
                            cudaDataType Btype, int ldb, const void* beta, void* C,
                            cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                            cublasGemmAlgo_t) {
  if (Atype != CUDA_R_32F || Btype != CUDA_R_32F || Ctype != CUDA_R_32F ||
      computeType == CUBLAS_COMPUTE_64F) {
    explain("cublasGemmEx: the emulated device has it for float only");
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return gemm_strided<float>("cublasGemmEx", handle, transa, transb, m, n, k,
                             static_cast<const float*>(alpha), static_cast<const float*>(A), lda, 0,
                             static_cast<const float*>(B), ldb, 0, static_cast<const float*>(beta),
                             static_cast<float*>(C), ldc, 0, 1);
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const float* alpha,
                           const float* A, int lda, const float* B, int ldb, const float* beta,
                           float* C, int ldc) {
  return gemm_strided<float>("cublasSgemm", handle, transa, transb, m, n, k, alpha, A, lda, 0, B,
                             ldb, 0, beta, C, ldc, 0, 1);
}
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float* alpha, const float* A, int lda,
                                         long long int strideA, const float* B, int ldb,
                                         long long int strideB, const float* beta, float* C,
                                         int ldc, long long int strideC, int batchCount) {
  return gemm_strided<float>("cublasSgemmStridedBatched", handle, transa, transb, m, n, k, alpha, A,
                             lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount);
}
cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k, const float* alpha,
                                  const float* const Aarray[], int lda, const float* const Barray[],
                                  int ldb, const float* beta, float* const Carray[], int ldc,
                                  int batchCount) {
  return gemm_batched<float>("cublasSgemmBatched", handle, transa, transb, m, n, k, alpha, Aarray,
                             lda, Barray, ldb, beta, Carray, ldc, batchCount);
}
cublasStatus_t cublasSsyrk(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,
                           int n, int k, const float* alpha, const float* A, int lda,
                           const float* beta, float* C, int ldc) {
  return do_syrk<float>("cublasSsyrk", handle, uplo, trans, n, k, alpha, A, lda, beta, C, ldc);
}
cublasStatus_t cublasSgeam(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, const float* alpha,
                           const float* A, int lda, const float* beta, const float* B, int ldb,
                           float* C, int ldc) {
  return do_geam<float>("cublasSgeam", handle, transa, transb, m, n, alpha, A, lda, beta, B, ldb, C,
                        ldc);
}
cublasStatus_t cublasSsymm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                           int m, int n, const float* alpha, const float* A, int lda,
                           const float* B, int ldb, const float* beta, float* C, int ldc) {
  return do_symm<float>("cublasSsymm", handle, side, uplo, m, n, alpha, A, lda, B, ldb, beta, C,
                        ldc);
}
cublasStatus_t cublasStrmm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                           cublasOperation_t trans, cublasDiagType_t diag, int m, int n,
                           const float* alpha, const float* A, int lda, const float* B, int ldb,
                           float* C, int ldc) {
  return do_trmm<float>("cublasStrmm", handle, side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb,
                        C, ldc);
}
cublasStatus_t cublasStrsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                           cublasOperation_t trans, cublasDiagType_t diag, int m, int n,
                           const float* alpha, const float* A, int lda, float* B, int ldb) {
  return do_trsm<float>("cublasStrsm", handle, side, uplo, trans, diag, m, n, alpha, A, lda, B,
                        ldb);
}
cublasStatus_t cublasStrsmBatched(cublasHandle_t handle, cublasSideMode_t side,
                                  cublasFillMode_t uplo, cublasOperation_t trans,
                                  cublasDiagType_t diag, int m, int n, const float* alpha,
                                  const float* const A[], int lda, float* const B[], int ldb,
                                  int batchCount) {
  return trsm_batched<float>("cublasStrsmBatched", handle, side, uplo, trans, diag, m, n, alpha, A,
                             lda, B, ldb, batchCount);
}
cublasStatus_t cublasSdgmm(cublasHandle_t handle, cublasSideMode_t mode, int m, int n,
                           const float* A, int lda, const float* x, int incx, float* C, int ldc) {
  return do_dgmm<float>("cublasSdgmm", handle, mode, m, n, A, lda, x, incx, C, ldc);
}
cublasStatus_t cublasSgemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                           const float* alpha, const float* A, int lda, const float* x, int incx,
                           const float* beta, float* y, int incy) {
  return do_gemv<float>("cublasSgemv", handle, trans, m, n, alpha, A, lda, x, incx, beta, y, incy);
}
cublasStatus_t cublasSdot(cublasHandle_t handle, int n, const float* x, int incx, const float* y,
                          int incy, float* result) {
  return do_dot<float>("cublasSdot", handle, n, x, incx, y, incy, result);
}
cublasStatus_t cublasSnrm2(cublasHandle_t handle, int n, const float* x, int incx, float* result) {
  return do_nrm2<float>("cublasSnrm2", handle, n, x, incx, result);
}
cublasStatus_t cublasSasum(cublasHandle_t handle, int n, const float* x, int incx, float* result) {
  return do_asum<float>("cublasSasum", handle, n, x, incx, result);
}
cublasStatus_t cublasSaxpy(cublasHandle_t handle, int n, const float* alpha, const float* x,
                           int incx, float* y, int incy) {
  return do_axpy<float>("cublasSaxpy", handle, n, alpha, x, incx, y, incy);
}
cublasStatus_t cublasSscal(cublasHandle_t handle, int n, const float* alpha, float* x, int incx) {
  return do_scal<float>("cublasSscal", handle, n, alpha, x, incx);
}
cublasStatus_t cublasScopy(cublasHandle_t handle, int n, const float* x, int incx, float* y,
                           int incy) {
  return do_copy<float>("cublasScopy", handle, n, x, incx, y, incy);
}
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const double* alpha,
                           const double* A, int lda, const double* B, int ldb, const double* beta,
                           double* C, int ldc) {
  return gemm_strided<double>("cublasDgemm", handle, transa, transb, m, n, k, alpha, A, lda, 0, B,
                              ldb, 0, beta, C, ldc, 0, 1);
}
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const double* alpha, const double* A, int lda,
                                         long long int strideA, const double* B, int ldb,
                                         long long int strideB, const double* beta, double* C,
                                         int ldc, long long int strideC, int batchCount) {
  return gemm_strided<double>("cublasDgemmStridedBatched", handle, transa, transb, m, n, k, alpha,
                              A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount);
}
cublasStatus_t cublasDgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k,
                                  const double* alpha, const double* const Aarray[], int lda,
                                  const double* const Barray[], int ldb, const double* beta,
                                  double* const Carray[], int ldc, int batchCount) {
  return gemm_batched<double>("cublasDgemmBatched", handle, transa, transb, m, n, k, alpha, Aarray,
                              lda, Barray, ldb, beta, Carray, ldc, batchCount);
}
cublasStatus_t cublasDsyrk(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,
                           int n, int k, const double* alpha, const double* A, int lda,
                           const double* beta, double* C, int ldc) {
  return do_syrk<double>("cublasDsyrk", handle, uplo, trans, n, k, alpha, A, lda, beta, C, ldc);
}
cublasStatus_t cublasDgeam(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, const double* alpha,
                           const double* A, int lda, const double* beta, const double* B, int ldb,
                           double* C, int ldc) {
  return do_geam<double>("cublasDgeam", handle, transa, transb, m, n, alpha, A, lda, beta, B, ldb,
                         C, ldc);
}
cublasStatus_t cublasDsymm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                           int m, int n, const double* alpha, const double* A, int lda,
                           const double* B, int ldb, const double* beta, double* C, int ldc) {
  return do_symm<double>("cublasDsymm", handle, side, uplo, m, n, alpha, A, lda, B, ldb, beta, C,
                         ldc);
}
cublasStatus_t cublasDtrmm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                           cublasOperation_t trans, cublasDiagType_t diag, int m, int n,
                           const double* alpha, const double* A, int lda, const double* B, int ldb,
                           double* C, int ldc) {
  return do_trmm<double>("cublasDtrmm", handle, side, uplo, trans, diag, m, n, alpha, A, lda, B,
                         ldb, C, ldc);
}
cublasStatus_t cublasDtrsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                           cublasOperation_t trans, cublasDiagType_t diag, int m, int n,
                           const double* alpha, const double* A, int lda, double* B, int ldb) {
  return do_trsm<double>("cublasDtrsm", handle, side, uplo, trans, diag, m, n, alpha, A, lda, B,
                         ldb);
}
cublasStatus_t cublasDtrsmBatched(cublasHandle_t handle, cublasSideMode_t side,
                                  cublasFillMode_t uplo, cublasOperation_t trans,
                                  cublasDiagType_t diag, int m, int n, const double* alpha,
                                  const double* const A[], int lda, double* const B[], int ldb,
                                  int batchCount) {
  return trsm_batched<double>("cublasDtrsmBatched", handle, side, uplo, trans, diag, m, n, alpha, A,
                              lda, B, ldb, batchCount);
}
cublasStatus_t cublasDdgmm(cublasHandle_t handle, cublasSideMode_t mode, int m, int n,
                           const double* A, int lda, const double* x, int incx, double* C,
                           int ldc) {
  return do_dgmm<double>("cublasDdgmm", handle, mode, m, n, A, lda, x, incx, C, ldc);
}
cublasStatus_t cublasDgemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                           const double* alpha, const double* A, int lda, const double* x, int incx,
                           const double* beta, double* y, int incy) {
  return do_gemv<double>("cublasDgemv", handle, trans, m, n, alpha, A, lda, x, incx, beta, y, incy);
}
cublasStatus_t cublasDdot(cublasHandle_t handle, int n, const double* x, int incx, const double* y,
                          int incy, double* result) {
  return do_dot<double>("cublasDdot", handle, n, x, incx, y, incy, result);
}
cublasStatus_t cublasDnrm2(cublasHandle_t handle, int n, const double* x, int incx,
                           double* result) {
  return do_nrm2<double>("cublasDnrm2", handle, n, x, incx, result);
}
cublasStatus_t cublasDasum(cublasHandle_t handle, int n, const double* x, int incx,
                           double* result) {
  return do_asum<double>("cublasDasum", handle, n, x, incx, result);
}
cublasStatus_t cublasDaxpy(cublasHandle_t handle, int n, const double* alpha, const double* x,
                           int incx, double* y, int incy) {
  return do_axpy<double>("cublasDaxpy", handle, n, alpha, x, incx, y, incy);
}
cublasStatus_t cublasDscal(cublasHandle_t handle, int n, const double* alpha, double* x, int incx) {
  return do_scal<double>("cublasDscal", handle, n, alpha, x, incx);
}
cublasStatus_t cublasDcopy(cublasHandle_t handle, int n, const double* x, int incx, double* y,
                           int incy) {
  return do_copy<double>("cublasDcopy", handle, n, x, incx, y, incy);
}

}  // extern "C"
