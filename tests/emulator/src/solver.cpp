// cuSOLVER on the host's LAPACK.

#include <cstring>
#include <set>
#include <type_traits>

#include "cusolverDn.h"
#include "library.h"

struct cusolverDnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};
struct cusolverDnParams {};

extern "C" {
void spotrf_(const char*, const int*, float*, const int*, int*);
void dpotrf_(const char*, const int*, double*, const int*, int*);
void spotri_(const char*, const int*, float*, const int*, int*);
void dpotri_(const char*, const int*, double*, const int*, int*);
void ssyevd_(const char*, const char*, const int*, float*, const int*, float*, float*, const int*,
             int*, const int*, int*);
void dsyevd_(const char*, const char*, const int*, double*, const int*, double*, double*,
             const int*, int*, const int*, int*);
}

namespace emulator {
namespace {

std::set<cusolverDnHandle_t>& handles() {
  static auto* instance = new std::set<cusolverDnHandle_t>;
  return *instance;
}

// LAPACK by type of scalar. Each returns LAPACK's info.
template <typename T>
int potrf(char uplo, int n, T* A, int lda) {
  int info = 0;
  if constexpr (std::is_same_v<T, float>)
    spotrf_(&uplo, &n, A, &lda, &info);
  else
    dpotrf_(&uplo, &n, A, &lda, &info);
  return info;
}
template <typename T>
int potri(char uplo, int n, T* A, int lda) {
  int info = 0;
  if constexpr (std::is_same_v<T, float>)
    spotri_(&uplo, &n, A, &lda, &info);
  else
    dpotri_(&uplo, &n, A, &lda, &info);
  return info;
}
template <typename T>
int syevd(char jobz, char uplo, int n, T* A, int lda, T* W) {
  const auto call = [&](T* work, int lwork, int* iwork, int liwork) {
    int info = 0;
    if constexpr (std::is_same_v<T, float>) {
      ssyevd_(&jobz, &uplo, &n, A, &lda, W, work, &lwork, iwork, &liwork, &info);
    } else {
      dsyevd_(&jobz, &uplo, &n, A, &lda, W, work, &lwork, iwork, &liwork, &info);
    }
    return info;
  };
  T best = 0;
  int best_integers = 0;
  if (int info = call(&best, -1, &best_integers, -1)) return info;
  // LAPACK's answer passes through T, so a float may have rounded it down.
  std::vector<T> work(static_cast<std::size_t>(best) + static_cast<std::size_t>(best) / 1024 + 64);
  std::vector<int> integers(static_cast<std::size_t>(best_integers));
  return call(work.data(), static_cast<int>(work.size()), integers.data(), best_integers);
}

char host(cublasFillMode_t uplo) {
  return uplo == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U';
}
char host(cusolverEigMode_t jobz) {
  return jobz == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N';
}

cusolverStatus_t begin(const char* name, cusolverDnHandle_t handle) {
  if (handles().count(handle) == 0) return CUSOLVER_STATUS_NOT_INITIALIZED;
  handle->stream = resolve(handle->stream);
  if (handle->stream == nullptr) {
    explain("%s: the stream of the handle was destroyed", name);
    return CUSOLVER_STATUS_EXECUTION_FAILED;
  }
  // A GPU may refuse, crash, or seem to capture it and compute something else at the replay.
  if (is_capturing(handle->stream)) {
    fail("%s: cuSOLVER must not be captured in a graph: NVIDIA does not promise what then happens",
         name);
  }
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t status_of(cudaError_t error) {
  return error == cudaSuccess ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_EXECUTION_FAILED;
}

#define CFAA_BEGIN(name)                                            \
  Locked locked(runtime_lock());                                    \
  if (cusolverStatus_t status = begin(name, handle)) return status; \
  LibraryCall call(name, handle->stream)
#define CFAA_REQUIRE(condition) \
  if (!(condition)) return CUSOLVER_STATUS_INVALID_VALUE

// Sizes that grow with n and are larger than what the routine needs, so that a caller who guesses
// one is found out.
int work_elements(int n) {
  return 2 * n * n + 6 * n + 64;
}

template <typename T>
cusolverStatus_t query(const char* name, cusolverDnHandle_t handle, int n, int lda, int* lwork) {
  CFAA_BEGIN(name);
  CFAA_REQUIRE(call.require(n >= 0, "n is negative") && call.require_leading("A", lda, n));
  *lwork = work_elements(n);
  return CUSOLVER_STATUS_SUCCESS;
}

// The matrix, the workspace and info of a single factorisation, checked; then `factor` runs.
template <typename T>
cusolverStatus_t factorise(const char* name, cusolverDnHandle_t handle, cublasFillMode_t uplo,
                           int n, T* A, int lda, T* work, int lwork, int* info,
                           int (*factor)(char, int, T*, int)) {
  CFAA_BEGIN(name);
  CFAA_REQUIRE(
      call.require(n >= 0, "n is negative") && call.require_leading("A", lda, n) &&
      call.require(lwork >= work_elements(n), "the workspace is smaller than bufferSize said"));
  call.uses("A", A, matrix_bytes<T>(n, n, lda));
  call.uses("the workspace", work, static_cast<std::size_t>(lwork) * sizeof(T));
  call.uses("devInfo", info, sizeof(int));
  return status_of(call.enqueue_work([=] {
    std::memset(work, 0xFF, static_cast<std::size_t>(lwork) * sizeof(T));
    *info = n == 0 ? 0 : factor(host(uplo), n, A, lda);
  }));
}

template <typename T>
cusolverStatus_t potrf_batched(const char* name, cusolverDnHandle_t handle, cublasFillMode_t uplo,
                               int n, T** A, int lda, int* info, int batch) {
  CFAA_BEGIN(name);
  CFAA_REQUIRE(call.require(n >= 0 && batch >= 0, "a size is negative") &&
               call.require_leading("A", lda, n));
  if (batch == 0) return CUSOLVER_STATUS_SUCCESS;
  call.uses("Aarray", A, static_cast<std::size_t>(batch) * sizeof(T*));
  call.uses("infoArray", info, static_cast<std::size_t>(batch) * sizeof(int));
  const int device = handle->device;
  return status_of(call.enqueue_work([=, name = std::string(name)] {
    for (int i = 0; i < batch; ++i) {
      check_batch_matrix(name, "Aarray", i, A[i], matrix_bytes<T>(n, n, lda), device);
      info[i] = n == 0 ? 0 : potrf<T>(host(uplo), n, A[i], lda);
    }
  }));
}

template <typename T>
cusolverStatus_t eigen(const char* name, cusolverDnHandle_t handle, cusolverEigMode_t jobz,
                       cublasFillMode_t uplo, int n, T* A, int lda, T* W, T* work, int lwork,
                       int* info) {
  CFAA_BEGIN(name);
  CFAA_REQUIRE(
      call.require(n >= 0, "n is negative") && call.require_leading("A", lda, n) &&
      call.require(lwork >= work_elements(n), "the workspace is smaller than bufferSize said"));
  call.uses("A", A, matrix_bytes<T>(n, n, lda));
  call.uses("W", W, static_cast<std::size_t>(n) * sizeof(T));
  call.uses("the workspace", work, static_cast<std::size_t>(lwork) * sizeof(T));
  call.uses("info", info, sizeof(int));
  return status_of(call.enqueue_work([=] {
    std::memset(work, 0xFF, static_cast<std::size_t>(lwork) * sizeof(T));
    *info = n == 0 ? 0 : syevd<T>(host(jobz), host(uplo), n, A, lda, W);
  }));
}

// Matrix i of a batch starts at A + i lda n, its eigenvalues at W + i n.
template <typename T>
std::function<void()> eigen_batch(cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, void* A,
                                  int lda, void* W, int* info, int batch) {
  return [=] {
    for (int i = 0; i < batch; ++i) {
      info[i] = n == 0 ? 0
                       : syevd<T>(host(jobz), host(uplo), n,
                                  static_cast<T*>(A) + static_cast<std::size_t>(i) * lda * n, lda,
                                  static_cast<T*>(W) + static_cast<std::size_t>(i) * n);
    }
  };
}

constexpr std::size_t batch_host_bytes = 64;  // not zero: a caller must pass what it was told

std::size_t batch_device_bytes(int64_t n, int64_t batch, std::size_t element) {
  return static_cast<std::size_t>(batch) * static_cast<std::size_t>(n * n + 4 * n + 16) * element;
}

bool supported(cudaDataType a, cudaDataType w, cudaDataType compute) {
  return (a == CUDA_R_32F || a == CUDA_R_64F) && w == a && compute == a;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  Locked locked(runtime_lock());
  if (unsafe_call("cusolverDnCreate") != cudaSuccess) return CUSOLVER_STATUS_NOT_INITIALIZED;
  *handle = new cusolverDnContext;
  (*handle)->device = current_device();
  handles().insert(*handle);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  Locked locked(runtime_lock());
  if (handles().erase(handle) == 0) return CUSOLVER_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t streamId) {
  Locked locked(runtime_lock());
  if (handles().count(handle) == 0) return CUSOLVER_STATUS_NOT_INITIALIZED;
  cudaStream_t stream = resolve(streamId);
  if (stream == nullptr || device_of_stream(stream) != handle->device) {
    explain("cusolverDnSetStream: the stream is not alive or belongs to another device");
    return CUSOLVER_STATUS_INVALID_VALUE;
  }
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t* streamId) {
  if (handles().count(handle) == 0) return CUSOLVER_STATUS_NOT_INITIALIZED;
  *streamId = handle->stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) {
  *params = new cusolverDnParams;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) {
  delete params;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXsyevBatched_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t, cublasFillMode_t, int64_t n,
    cudaDataType dataTypeA, const void*, int64_t lda, cudaDataType dataTypeW, const void*,
    cudaDataType computeType, std::size_t* workspaceInBytesOnDevice,
    std::size_t* workspaceInBytesOnHost, int64_t batchSize) {
  CFAA_BEGIN("cusolverDnXsyevBatched_bufferSize");
  CFAA_REQUIRE(call.require(n >= 0 && batchSize >= 0, "a size is negative") &&
               call.require_leading("A", lda, n) &&
               call.require(supported(dataTypeA, dataTypeW, computeType),
                            "A, W and the computation must all be float or all double"));
  *workspaceInBytesOnDevice =
      batch_device_bytes(n, batchSize, dataTypeA == CUDA_R_32F ? sizeof(float) : sizeof(double));
  *workspaceInBytesOnHost = batch_host_bytes;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                        cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                        cudaDataType dataTypeA, void* A, int64_t lda,
                                        cudaDataType dataTypeW, void* W, cudaDataType computeType,
                                        void* bufferOnDevice, std::size_t workspaceInBytesOnDevice,
                                        void* bufferOnHost, std::size_t workspaceInBytesOnHost,
                                        int* info, int64_t batchSize) {
  CFAA_BEGIN("cusolverDnXsyevBatched");
  const std::size_t element = dataTypeA == CUDA_R_32F ? sizeof(float) : sizeof(double);
  CFAA_REQUIRE(call.require(params != nullptr, "params is null") &&
               call.require(n >= 0 && batchSize >= 0, "a size is negative") &&
               call.require_leading("A", lda, n) &&
               call.require(supported(dataTypeA, dataTypeW, computeType),
                            "A, W and the computation must all be float or all double") &&
               call.require(workspaceInBytesOnDevice >= batch_device_bytes(n, batchSize, element),
                            "the device workspace is smaller than bufferSize said") &&
               call.require(workspaceInBytesOnHost >= batch_host_bytes && bufferOnHost != nullptr &&
                                device_of(bufferOnHost) < 0,
                            "the host workspace is missing, or smaller than bufferSize said"));
  if (batchSize == 0) return CUSOLVER_STATUS_SUCCESS;
  const std::size_t last = static_cast<std::size_t>(batchSize - 1);
  call.uses("A", A,
            last * static_cast<std::size_t>(lda * n) * element +
                (element == sizeof(float) ? matrix_bytes<float>(n, n, lda)
                                          : matrix_bytes<double>(n, n, lda)));
  call.uses("W", W, static_cast<std::size_t>(batchSize * n) * element);
  call.uses("info", info, static_cast<std::size_t>(batchSize) * sizeof(int));
  call.uses("the device workspace", bufferOnDevice, workspaceInBytesOnDevice);
  const int order = static_cast<int>(n), leading = static_cast<int>(lda);
  const int batch = static_cast<int>(batchSize);
  const auto solve = dataTypeA == CUDA_R_32F
                         ? eigen_batch<float>(jobz, uplo, order, A, leading, W, info, batch)
                         : eigen_batch<double>(jobz, uplo, order, A, leading, W, info, batch);
  return status_of(call.enqueue_work([=] {
    std::memset(bufferOnDevice, 0xFF, workspaceInBytesOnDevice);
    solve();
  }));
}

cusolverStatus_t cusolverDnSpotrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t, int n,
                                             float*, int lda, int* Lwork) {
  return query<float>("cusolverDnSpotrf_bufferSize", handle, n, lda, Lwork);
}
cusolverStatus_t cusolverDnSpotrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, float* A,
                                  int lda, float* Workspace, int Lwork, int* devInfo) {
  return factorise<float>("cusolverDnSpotrf", handle, uplo, n, A, lda, Workspace, Lwork, devInfo,
                          emulator::potrf<float>);
}
cusolverStatus_t cusolverDnSpotrfBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,
                                         float* Aarray[], int lda, int* infoArray, int batchSize) {
  return potrf_batched<float>("cusolverDnSpotrfBatched", handle, uplo, n, Aarray, lda, infoArray,
                              batchSize);
}
cusolverStatus_t cusolverDnSpotri_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t, int n,
                                             float*, int lda, int* lwork) {
  return query<float>("cusolverDnSpotri_bufferSize", handle, n, lda, lwork);
}
cusolverStatus_t cusolverDnSpotri(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, float* A,
                                  int lda, float* work, int lwork, int* devInfo) {
  return factorise<float>("cusolverDnSpotri", handle, uplo, n, A, lda, work, lwork, devInfo,
                          emulator::potri<float>);
}
cusolverStatus_t cusolverDnSsyevd_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t,
                                             cublasFillMode_t, int n, const float*, int lda,
                                             const float*, int* lwork) {
  return query<float>("cusolverDnSsyevd_bufferSize", handle, n, lda, lwork);
}
cusolverStatus_t cusolverDnSsyevd(cusolverDnHandle_t handle, cusolverEigMode_t jobz,
                                  cublasFillMode_t uplo, int n, float* A, int lda, float* W,
                                  float* work, int lwork, int* info) {
  return eigen<float>("cusolverDnSsyevd", handle, jobz, uplo, n, A, lda, W, work, lwork, info);
}
cusolverStatus_t cusolverDnDpotrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t, int n,
                                             double*, int lda, int* Lwork) {
  return query<double>("cusolverDnDpotrf_bufferSize", handle, n, lda, Lwork);
}
cusolverStatus_t cusolverDnDpotrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,
                                  double* A, int lda, double* Workspace, int Lwork, int* devInfo) {
  return factorise<double>("cusolverDnDpotrf", handle, uplo, n, A, lda, Workspace, Lwork, devInfo,
                           emulator::potrf<double>);
}
cusolverStatus_t cusolverDnDpotrfBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,
                                         double* Aarray[], int lda, int* infoArray, int batchSize) {
  return potrf_batched<double>("cusolverDnDpotrfBatched", handle, uplo, n, Aarray, lda, infoArray,
                               batchSize);
}
cusolverStatus_t cusolverDnDpotri_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t, int n,
                                             double*, int lda, int* lwork) {
  return query<double>("cusolverDnDpotri_bufferSize", handle, n, lda, lwork);
}
cusolverStatus_t cusolverDnDpotri(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,
                                  double* A, int lda, double* work, int lwork, int* devInfo) {
  return factorise<double>("cusolverDnDpotri", handle, uplo, n, A, lda, work, lwork, devInfo,
                           emulator::potri<double>);
}
cusolverStatus_t cusolverDnDsyevd_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t,
                                             cublasFillMode_t, int n, const double*, int lda,
                                             const double*, int* lwork) {
  return query<double>("cusolverDnDsyevd_bufferSize", handle, n, lda, lwork);
}
cusolverStatus_t cusolverDnDsyevd(cusolverDnHandle_t handle, cusolverEigMode_t jobz,
                                  cublasFillMode_t uplo, int n, double* A, int lda, double* W,
                                  double* work, int lwork, int* info) {
  return eigen<double>("cusolverDnDsyevd", handle, jobz, uplo, n, A, lda, W, work, lwork, info);
}

}  // extern "C"
