#pragma once

// Which of its kernels OpenBLAS uses. It chooses by the processor's model number when it is loaded,
// and a release knows none that came after it: Debian 12's takes a Xeon of 2024 for one of 2004 and
// computes with SSE3 what AVX-512 does many times faster. The environment variable
// OPENBLAS_CORETYPE is the only way to choose, and it is read before main().

#include <string>

namespace cfaa::cpu {

// The kernels that this processor's instructions allow where OpenBLAS chose older ones: "SkylakeX"
// or "Haswell"; "" where it chose well, or where OPENBLAS_CORETYPE is set.
std::string better_blas_kernels();

// Starts the program again with those kernels; returns where there are none, or where it cannot.
// Call it first in main(): nothing must have been opened, written or started yet.
void restart_with_better_blas_kernels(char** argv);

// The same in a process that is somebody else's and cannot be started again: OpenBLAS is told to
// choose once more. Returns whether it now uses better ones. Call it before any other thread
// computes.
bool choose_better_blas_kernels();

}  // namespace cfaa::cpu
