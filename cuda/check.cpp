#include "cuda/check.h"

#include <cstdio>
#include <cstring>

#include "host/core/error.h"

namespace cfaa::cuda {
namespace {

const char* name_of(cusolverStatus_t status) {
  switch (status) {
    case CUSOLVER_STATUS_SUCCESS:
      return "CUSOLVER_STATUS_SUCCESS";
    case CUSOLVER_STATUS_NOT_INITIALIZED:
      return "CUSOLVER_STATUS_NOT_INITIALIZED";
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return "CUSOLVER_STATUS_ALLOC_FAILED";
    case CUSOLVER_STATUS_INVALID_VALUE:
      return "CUSOLVER_STATUS_INVALID_VALUE";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
      return "CUSOLVER_STATUS_ARCH_MISMATCH";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
      return "CUSOLVER_STATUS_EXECUTION_FAILED";
    case CUSOLVER_STATUS_INTERNAL_ERROR:
      return "CUSOLVER_STATUS_INTERNAL_ERROR";
    case CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
      return "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED";
    case CUSOLVER_STATUS_NOT_SUPPORTED:
      return "CUSOLVER_STATUS_NOT_SUPPORTED";
    case CUSOLVER_STATUS_INVALID_WORKSPACE:
      return "CUSOLVER_STATUS_INVALID_WORKSPACE";
    default:
      return "an unknown status";
  }
}

// The path from the project's folder on, whatever the build's working directory was.
const char* from_root(const char* file) {
  for (const char* folder : {"/cuda/", "/kernels/", "/host/", "/tests/", "/bench/", "/tools/"}) {
    if (const char* found = std::strstr(file, folder)) return found + 1;
  }
  return file;
}

std::string sentence(const char* call, const std::string& cause, const char* file, int line) {
  return std::string(call) + " failed: " + cause + " [" + from_root(file) + ":" +
         std::to_string(line) + "]";
}

}  // namespace

std::string describe(cudaError_t status) {
  return std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ")";
}

std::string describe(cublasStatus_t status) {
  return cublasGetStatusString(status);
}

std::string describe(cusolverStatus_t status) {
  return std::string(name_of(status)) + " (" + std::to_string(static_cast<int>(status)) + ")";
}

void throw_failure(const char* call, const std::string& cause, const char* file, int line) {
  throw Error(sentence(call, cause, file, line));
}

void warn_failure(const char* call, const std::string& cause, const char* file, int line) noexcept {
  std::fprintf(stderr, "warning: %s\n", sentence(call, cause, file, line).c_str());
}

}  // namespace cfaa::cuda
