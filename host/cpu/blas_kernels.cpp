#include "host/cpu/blas_kernels.h"

#include <cblas.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

// What OpenBLAS calls when it is loaded, in builds that choose between kernels.
extern "C" {
void gotoblas_dynamic_init() __attribute__((weak));
void gotoblas_dynamic_quit() __attribute__((weak));
}

namespace cfaa::cpu {
namespace {

// OpenBLAS's names of kernels without AVX2.
const std::set<std::string> kOldKernels = {
    "Katmai", "Coppermine",  "Northwood", "Prescott",  "Banias",     "Atom",         "Core2",
    "Penryn", "Dunnington",  "Nehalem",   "Athlon",    "Opteron",    "Opteron_SSE3", "Barcelona",
    "Nano",   "Sandybridge", "Bobcat",    "Bulldozer", "Piledriver", "Generic"};

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

}  // namespace

std::string better_blas_kernels() {
#if defined(__x86_64__)
  if (std::getenv(kVariable) != nullptr || !kOldKernels.count(openblas_get_corename())) return "";
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return "";
}

void restart_with_better_blas_kernels(char** argv) {
  const std::string kernels = better_blas_kernels();
  if (kernels.empty() || setenv(kVariable, kernels.c_str(), 0) != 0) return;
  execv("/proc/self/exe", argv);
}

bool choose_better_blas_kernels() {
  const std::string kernels = better_blas_kernels();
  if (kernels.empty() || !gotoblas_dynamic_init || !gotoblas_dynamic_quit) return false;
  if (setenv(kVariable, kernels.c_str(), 0) != 0) return false;
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(kVariable);  // other programs that this process starts choose for themselves
  return better_blas_kernels().empty();
}

}  // namespace cfaa::cpu
