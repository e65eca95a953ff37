#pragma once

// One error check for the CUDA runtime, cuBLAS and cuSOLVER:
//
//   CFAA_CUDA_CHECK(cudaStreamSynchronize(stream));   // throws cfaa::Error
//   CFAA_CUDA_CHECK(cublasSetStream(blas, stream));
//   CFAA_CUDA_WARN(cudaFree(memory));                 // destructors: says so on stderr, continues

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <string>

namespace cfaa::cuda {

inline bool succeeded(cudaError_t status) {
  return status == cudaSuccess;
}
inline bool succeeded(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS;
}
inline bool succeeded(cusolverStatus_t status) {
  return status == CUSOLVER_STATUS_SUCCESS;
}

// "out of memory (cudaErrorMemoryAllocation)"
std::string describe(cudaError_t status);
std::string describe(cublasStatus_t status);
std::string describe(cusolverStatus_t status);

// Throws cfaa::Error: "cudaMalloc(&p, n) failed: out of memory (...) [cuda/device.cpp:31]".
[[noreturn]] void throw_failure(const char* call, const std::string& cause, const char* file,
                                int line);
void warn_failure(const char* call, const std::string& cause, const char* file, int line) noexcept;

template <typename Status>
void check(Status status, const char* call, const char* file, int line) {
  if (!succeeded(status)) throw_failure(call, describe(status), file, line);
}

template <typename Status>
void warn(Status status, const char* call, const char* file, int line) noexcept {
  if (!succeeded(status)) warn_failure(call, describe(status), file, line);
}

}  // namespace cfaa::cuda

#define CFAA_CUDA_CHECK(call) ::cfaa::cuda::check((call), #call, __FILE__, __LINE__)
#define CFAA_CUDA_WARN(call) ::cfaa::cuda::warn((call), #call, __FILE__, __LINE__)
