#pragma once

// What was launched so far, for `cfaa_gpu bench`: one entry per kernel and configuration, with what
// the runtime says of it.

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <vector>

namespace cfaa::cuda {

struct LaunchedKernel {
  std::string name;
  int registers = 0;
  std::size_t shared_bytes = 0;  // static and dynamic, per block
  int threads = 0;               // per block
  double occupancy = 0;          // resident threads over the multiprocessor's most
};

// In the order of their first launch. Kernels are noted by launch() from the first call of
// watch_launches() on.
void watch_launches();
void note_launch(const void* kernel, dim3 block, std::size_t dynamic_shared_bytes);
std::vector<LaunchedKernel> launched_kernels();

}  // namespace cfaa::cuda
