#include "cuda/libraries.h"

#if CFAA_EMULATED

std::string cfaa::cuda::why_libraries_missing() {
  return "";
}

#else

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <dlfcn.h>

#include <cstddef>

// Every function of theirs that the project calls, by the name it is linked by. A call jumps to the
// address that the loader put into the function's slot. The slots and jumps are written in
// assembly because they have no signature of their own: it is the header's, whatever it is.
#define CFAA_CUBLAS(X)         \
  X(cublasCreate_v2)           \
  X(cublasDestroy_v2)          \
  X(cublasDgemm_v2)            \
  X(cublasDgemmStridedBatched) \
  X(cublasDtrsmBatched)        \
  X(cublasGetStatusString)     \
  X(cublasSetMathMode)         \
  X(cublasSetStream_v2)        \
  X(cublasSetWorkspace_v2)     \
  X(cublasSgemm_v2)            \
  X(cublasSgemmStridedBatched) \
  X(cublasStrsmBatched)
#define CFAA_CUSOLVER(X)         \
  X(cusolverDnCreate)            \
  X(cusolverDnCreateParams)      \
  X(cusolverDnDestroy)           \
  X(cusolverDnDestroyParams)     \
  X(cusolverDnDpotrf)            \
  X(cusolverDnDpotrfBatched)     \
  X(cusolverDnDpotrf_bufferSize) \
  X(cusolverDnDpotri)            \
  X(cusolverDnDpotri_bufferSize) \
  X(cusolverDnSetStream)         \
  X(cusolverDnSpotrf)            \
  X(cusolverDnSpotrfBatched)     \
  X(cusolverDnSpotrf_bufferSize) \
  X(cusolverDnSpotri)            \
  X(cusolverDnSpotri_bufferSize) \
  X(cusolverDnXsyevBatched)      \
  X(cusolverDnXsyevBatched_bufferSize)

#if defined(__x86_64__)
#define CFAA_JUMP(name) "  endbr64\n  jmp *cfaa_slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define CFAA_JUMP(name)                     \
  "  adrp x16, cfaa_slot_" #name            \
  "\n"                                      \
  "  ldr x16, [x16, :lo12:cfaa_slot_" #name \
  "]\n"                                     \
  "  br x16\n"
#else
#error "cuda/libraries.cpp: say how this processor jumps to an address in memory"
#endif
#define CFAA_FORWARD(name)                                                 \
  extern "C" __attribute__((visibility("hidden"))) void* cfaa_slot_##name; \
  void* cfaa_slot_##name = nullptr;                                        \
  asm("  .text\n  .globl " #name "\n  .type " #name ", %function\n" #name  \
      ":\n" CFAA_JUMP(name) "  .size " #name ", . - " #name "\n");
CFAA_CUBLAS(CFAA_FORWARD)
CFAA_CUSOLVER(CFAA_FORWARD)

namespace cfaa::cuda {
namespace {

struct Symbol {
  const char* name;
  void** slot;
};
#define CFAA_SYMBOL(name) {#name, &cfaa_slot_##name},
const Symbol kCublas[] = {CFAA_CUBLAS(CFAA_SYMBOL)};
const Symbol kCusolver[] = {CFAA_CUSOLVER(CFAA_SYMBOL)};

template <std::size_t Count>
std::string load(const std::string& file, const Symbol (&symbols)[Count]) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return file + " cannot be loaded (" + dlerror() + "); install the libraries of CUDA " +
           std::to_string(CUDART_VERSION / 1000) + ", or name their folder in LD_LIBRARY_PATH";
  }
  for (const Symbol& symbol : symbols) {
    *symbol.slot = dlsym(library, symbol.name);
    if (*symbol.slot == nullptr) {
      return file + " has no function " + symbol.name + "; install one of CUDA 12.6.2 or later";
    }
  }
  return "";
}

}  // namespace

std::string why_libraries_missing() {
  static const std::string missing = [] {
    const std::string blas = load("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR), kCublas);
    return blas.empty() ? load("libcusolver.so." + std::to_string(CUSOLVER_VER_MAJOR), kCusolver)
                        : blas;
  }();
  return missing;
}

}  // namespace cfaa::cuda

#endif
